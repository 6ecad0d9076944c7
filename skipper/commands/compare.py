"""``skipper compare``: tests whether one agent is better than another."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table

from skipper.commands.tables import narrow_table

if TYPE_CHECKING:
    from skipper.analysis.comparison import Comparison


@dataclass(frozen=True)
class Compare:
    """Test whether one agent is better than another, from the output of ``skipper evaluate --json``, a file per run.

    The unit of a test is a training run (a seed), not an episode: episodes of one network are not independent evidence
    about an agent. Which test is valid depends on how the runs were made; the files say it, and the command chooses.

    Different networks on the two sides: Welch's t-test over seeds, as in the paper.
    The same networks on both sides (two ways to plan, with and without a decision-time aid): the paired t-test over
    seeds, and the exact test that changes signs of differences. Three pairs cannot give less than 0.125 one-sided.
    Some networks shared, others not: refused.
    One run on a side: no test over seeds. One network against another on the same tasks: McNemar's exact test, about
    these two networks only.

    "p" is two-sided (the agents differ), "p better" one-sided (the first is better). "seeds for power .8" is how many
    seeds of each agent a test needs that finds the measured difference four times out of five; "paper" is the entry
    that the paper's significance tables would have: that number by the paper's recipe, or NO. p-values of single sets
    are not corrected for looking at several sets. "from" and "to" limit the interval of the t-test; "bootstrap"
    intervals resample seeds and tasks, with tasks drawn alike for both sides where both played the same.
    docs/results.md says more.

    Example: skipper compare --better a-20.json a-21.json --worse b-20.json b-21.json
    """

    better: tuple[Path, ...]
    """Files of the agent that should be better, one per seed."""
    worse: tuple[Path, ...]
    """Files of the other agent."""
    paired: bool = False
    """Files of older versions do not name their networks: pair them in the given order, since both sides play the same
    networks."""
    training: bool = False
    """Compare success on training tasks instead of unseen ones."""
    resamples: int = 10_000
    """Resamples of the bootstrap."""
    seed: int = 0
    """Decides the resamples."""
    json: bool = False
    """Print one JSON object instead of the tables."""

    def run(self) -> None:
        """Print the tables or the object."""
        from skipper.analysis.comparison import as_json, compare
        from skipper.analysis.results_file import read_run

        if self.resamples < 100:
            raise ValueError(f"--resamples must be at least 100, got {self.resamples}")
        better, worse = ([read_run(path, self.training) for path in paths] for paths in (self.better, self.worse))
        found = compare(better, worse, np.random.default_rng(self.seed), self.paired, self.resamples)
        if self.json:
            print(json.dumps(as_json(found), indent=2))
        else:
            show(found)


def show(found: "Comparison") -> None:
    """Print the tables, then one line per statement."""
    console = Console()
    console.print(_sides_table(found), "", _tests_table(found), "", sep="\n")
    for line in _statements(found):
        console.print(line, highlight=False)


def _sides_table(found: "Comparison") -> Table:
    intervals = found.intervals
    first = (None, None) if intervals is None else (intervals.mean_first, intervals.iqm_first)
    second = (None, None) if intervals is None else (intervals.mean_second, intervals.iqm_second)
    table = narrow_table(["", "agent"], ["runs", "mean", "bootstrap", "IQM", "bootstrap"])
    for name, side, (mean, middle) in (("better", found.better, first), ("worse", found.worse, second)):
        numbers = (f"{side.mean:.3f}", _interval(mean), f"{side.iqm:.3f}", _interval(middle))
        table.add_row(name, side.agent, str(len(side.means)), *numbers)
    return table


def _tests_table(found: "Comparison") -> Table:
    """A column per evaluation set, and one for the mean over all of them."""
    tests = [*found.sets.values(), found.test]
    table = narrow_table([""], [*found.sets, "mean"])
    for label, side in (("better", found.better), ("worse", found.worse)):
        shares = [*(float(np.mean(share)) for share in side.success.values()), side.mean]
        table.add_row(label, *(f"{share:.3f}" for share in shares))
    table.add_row("difference", *(f"{test.difference:+.3f}" for test in tests))
    for label, attribute in (("  from (95%)", "low"), ("  to", "high")):
        limits = (getattr(test, attribute) for test in tests)
        table.add_row(label, *("n/a" if limit is None else f"{limit:+.3f}" for limit in limits))
    for label, attribute in (
        ("p", "p_two_sided"),
        ("p better", "p_one_sided"),
        ("seeds for power .8", "seeds_for_power"),
        ("paper", "paper"),
    ):
        table.add_row(label, *(_cell(getattr(test, attribute)) for test in tests))
    return table


def _statements(found: "Comparison") -> list[str]:
    lines = []
    for name, side in (("better", found.better), ("worse", found.worse)):
        lines.append(f"{name}, each run: {' '.join(f'{share:.3f}' for share in side.means)}")
    lines += _test_statements(found)
    difference = improvement = None
    if found.intervals is not None:
        difference, improvement = found.intervals.difference, found.intervals.probability_of_improvement
    lines.append(f"difference {found.test.difference:+.3f}, bootstrap {_interval(difference)}")
    chance = f"{found.probability_of_improvement:.3f}"
    lines.append(f"probability of improvement {chance}, bootstrap {_interval(improvement)}")
    if found.mcnemar is not None:
        first, second, p = found.mcnemar
        lines.append(
            f"McNemar's exact test, about these two networks only: {first} tasks solved by the first alone, {second} "
            f"by the second alone, p {_cell(p)}"
        )
    return lines + [f"Note: {note}" for note in found.notes]


def _test_statements(found: "Comparison") -> list[str]:
    """Which test over seeds was made and why, and what the table does not show of it."""
    test = found.test
    networks = "the same networks on both sides" if found.shared_networks else "different networks"
    tasks = {True: "the same tasks", False: "different tasks", None: "tasks unknown"}[found.shared_tasks]
    name = {"Welch": "Welch's t-test over seeds", "paired": "paired t-test over seeds"}[test.name]
    lines = [f"{networks}, {tasks}: {name if test.t is not None else 'no t-test over seeds'}"]
    if test.t is not None:
        power = f"power with 20 seeds {_cell(test.power_with_20_seeds)}"
        lines.append(f"t {test.t:.2f} with {test.df:.1f} degrees of freedom; {power}")
    if test.p_signs_two_sided is not None:
        two_sided, one_sided = _cell(test.p_signs_two_sided), _cell(test.p_signs_one_sided)
        lines.append(f"exact test by changing signs: p {two_sided}, p better {one_sided}")
    return lines


def _interval(interval: tuple[float, float] | None) -> str:
    return "n/a" if interval is None else f"{interval[0]:.3f}, {interval[1]:.3f}"


def _cell(value: float | str | None) -> str:
    return "n/a" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
