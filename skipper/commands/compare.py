"""``skipper compare``: tests whether one agent is better than another."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Compare:
    """Test whether one agent is better than another, from the output of ``skipper evaluate --json`` for several seeds.

    Two one-sided tests. "over tasks" asks whether these networks are better on other tasks: a z-test of the success
    rates in every evaluation set, with all episodes taken as independent. "over seeds" asks whether other seeds would
    be better too: a permutation test over all ways to divide the runs into two groups (three and three runs can be
    divided in 20 ways, so p cannot fall below 0.05).

    Example: skipper compare --better regen-0.json regen-1.json --worse once-0.json once-1.json
    """

    better: tuple[Path, ...]
    """Files of the agent that should be better, one per seed."""
    worse: tuple[Path, ...]
    """Files of the other agent."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Print the table or the object."""
        from skipper.analysis.statistics import compare, read_results

        result = compare(*([read_results(path) for path in paths] for paths in (self.better, self.worse)))
        if self.json:
            print(json.dumps(result._asdict(), indent=2))
            return
        table = Table("", "seeds", "mean success of each", "mean")
        for name, means in (("better", result.better), ("worse", result.worse)):
            table.add_row(name, str(len(means)), " ".join(f"{mean:.3f}" for mean in means), f"{np.mean(means):.3f}")
        Console().print(table)
        print(
            f"difference {result.difference:+.3f}; p over tasks {result.p_tasks:.2g}, over seeds {result.p_seeds:.2g}"
        )
