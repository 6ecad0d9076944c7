"""Commands that look into trained agents and compare them: diagnose, ablate, compare, plot."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from skipper.commands.shared import WorldOptions, task_sets
from skipper.config import EVALUATION_DIFFICULTIES
from skipper.training.evaluate import Summary


@dataclass(frozen=True)
class Diagnose:
    """Say what limits a trained Skipper: ground truth in place of one learned part at a time.

    The first table holds success rates; in each row one part is true instead of learned. True edges are not cut for
    their length. The second one says how wrong distances and walks are, by true distance, and how often plans are
    deluded: what cannot be reached stands under "inf".

    Example: skipper diagnose runs/first --episodes 100 --difficulties 0.35 0.55
    """

    run_folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(name="run", metavar="RUN")]
    """Folder of a trained Skipper agent."""
    difficulties: tuple[float, ...] = EVALUATION_DIFFICULTIES
    """Densities of lava of the unseen tasks."""
    episodes: int = 100
    """Tasks per difficulty."""
    seed: int = 0
    """Decides the tasks and all that happens in them."""
    json: bool = False
    """Print one JSON object instead of the tables."""
    world: tyro.conf.OmitArgPrefixes[WorldOptions] = field(default_factory=WorldOptions)

    def run(self) -> None:
        """Print both tables or the object."""
        from skipper.analysis.oracle_substitution import diagnose, load_with_oracle, measure
        from skipper.training.run_folder import read_config

        world = self.world.changed(read_config(self.run_folder).world)
        agent = load_with_oracle(self.run_folder, world)
        sets = task_sets(world, self.difficulties, self.episodes, self.seed)
        replaced, errors = diagnose(agent, sets, self.seed), measure(agent, sets, self.seed)
        if self.json:
            rows = {name: {level: row._asdict() for level, row in levels.items()} for name, levels in replaced.items()}
            print(json.dumps({"replaced": rows, "truth": errors}, indent=2))
            return
        console = Console()
        console.print(changes_table("true instead of learned", replaced))
        console.print(errors_table(errors))


@dataclass(frozen=True)
class Ablate:
    """Say what each setting of planning is worth: the same networks play with one setting changed at a time.

    Example: skipper ablate pretrained/skipper-regen-50 --episodes 100 --seed 1
    """

    run_folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(name="run", metavar="RUN")]
    """Folder of a trained Skipper agent."""
    difficulties: tuple[float, ...] = EVALUATION_DIFFICULTIES
    """Densities of lava of the unseen tasks."""
    episodes: int = 100
    """Tasks per difficulty."""
    seed: int = 0
    """Decides the tasks and all that happens in them."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Print the table or the object."""
        from skipper.analysis.oracle_substitution import load_with_oracle
        from skipper.experiments.ablate import ablate
        from skipper.training.run_folder import read_config

        sets = task_sets(read_config(self.run_folder).world, self.difficulties, self.episodes, self.seed)
        changed = ablate(load_with_oracle(self.run_folder), sets, self.seed)
        if self.json:
            rows = {name: {level: row._asdict() for level, row in levels.items()} for name, levels in changed.items()}
            print(json.dumps(rows, indent=2))
        else:
            Console().print(changes_table("changed in planning", changed))


@dataclass(frozen=True)
class Compare:
    """Test whether one agent is better than another, from what ``skipper evaluate --json`` printed for several seeds.

    Two tests, both one-sided. "over tasks" asks whether these networks are better on other tasks: a z-test of the
    success rates, difficulty by difficulty, in which all episodes count as independent. "over seeds" asks whether
    other seeds would be better too: all ways to divide the runs into two groups (of three and three there are 20, so
    that it cannot fall below 0.05).

    Example: skipper compare --better regen-0.json regen-1.json --worse once-0.json once-1.json
    """

    better: tuple[Path, ...]
    """Files of the agent that is thought to be better, one for each seed."""
    worse: tuple[Path, ...]
    """Files of the other one."""
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


@dataclass(frozen=True)
class Plot:
    """Draw the learning curves of one or several runs.

    Example: skipper plot runs/first runs/second --out curves.png
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run folders."""
    out: Path = Path("curves.png")
    """The picture; its ending decides the format (png, pdf, svg)."""

    def run(self) -> None:
        """Write the picture."""
        from skipper.analysis.plots import draw_learning_curves
        from skipper.training.recorder import read_evaluations

        if not self.runs:
            raise ValueError("name at least one run folder")
        draw_learning_curves({path.name: read_evaluations(path) for path in self.runs}, self.out)
        print(f"wrote {self.out}")


def changes_table(title: str, changed: dict[str, dict[str, Summary]]) -> Table:
    """A row per change, success per difficulty and on average, and what it gains over the first row."""
    levels = list(next(iter(changed.values())))
    table = Table(title, *levels, "mean", "gain", "deaths", "timeouts")
    base = np.mean([row.success for row in next(iter(changed.values())).values()])
    for name, rows in changed.items():
        success = [row.success for row in rows.values()]
        shares = [np.mean([getattr(row, key) for row in rows.values()]) for key in ("deaths", "timeouts")]
        numbers = [*success, np.mean(success)]
        gain = f"{np.mean(success) - base:+.3f}"
        table.add_row(name, *(f"{x:.3f}" for x in numbers), gain, *(f"{share:.3f}" for share in shares))
    return table


def errors_table(errors: dict[str, dict[str, Any]]) -> Table:
    """A row per measure, a column per difficulty."""
    table = Table("measured against the truth", *errors)

    def add(label: str, *path: str) -> None:
        values: list[Any] = list(errors.values())
        for key in path:
            values = [None if value is None else value.get(key) for value in values]
        if any(value is not None for value in values):
            table.add_row(label, *("-" if value is None else f"{value:.3f}" for value in values))

    for steps in (1, 2, 4, 6, 8, "inf"):
        add(f"distance error at {steps}", "edges", str(steps), "distance")
    for steps in (1, 2, 4, 6, 8):
        add(f"walks that fail at {steps}", "walks", str(steps), "failure")
    first = next(iter(errors.values()))
    for part in ("plans", "generator"):
        for name in first[part]:
            add(name.replace("_", " "), part, name)
    return table
