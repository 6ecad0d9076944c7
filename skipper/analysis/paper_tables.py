"""The paper's tables of significance and power, and tables of success; cells are text, whatever shows them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from skipper.analysis.comparison import Comparison, compare
from skipper.analysis.results_file import Run
from skipper.analysis.statistics import NOT_SIGNIFICANT, SeedTest, iqm, seed_spread

RESAMPLES = 2_000
NONE = "-"


class Table(NamedTuple):
    """A table of text."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    notes: list[str]


def entry(test: SeedTest, seeds: int) -> str:
    """An entry of tab:once and tab:regen: seeds needed, or NO; with a star where these are more than there were."""
    if test.paper is None:  # one seed, or seeds that do not differ
        return f"{NOT_SIGNIFICANT}*" if seeds > 1 and test.difference <= 0 else NONE
    weak = test.paper == NOT_SIGNIFICANT or int(test.paper) > seeds
    return f"{test.paper}*" if weak else str(test.paper)


def significance_table(
    title: str, agent: Mapping[str, Sequence[Run]], others: Mapping[str, Mapping[str, Sequence[Run]]]
) -> Table:
    """One agent against others: a row per number of tasks and other agent, a column per difficulty.

    ``agent`` are its runs by number of training tasks, ``others`` those of the other agents.
    """
    sets = sorted({name for runs in agent.values() for run in runs for name in run.success})
    columns = ["training tasks", "against", *sets, "difference", "IQM", "IQM of the other", "better with probability"]
    rows, warnings = list[list[str]](), dict[str, None]()
    for number, runs in agent.items():
        for name, sides in others.items():
            against, found = sides.get(number, []), None
            if runs and against:
                try:
                    found = compare_runs(runs, against)
                    warnings |= dict.fromkeys(found.notes)
                except ValueError as error:
                    warnings[f"{number} training tasks, {name}: {error}."] = None
            rows.append([number, name, *_cells(found, sets, min(len(runs), len(against)))])
    notes = [
        "Welch's t-test at .05 for every set. An entry is the number of seeds needed for a power of .8, by the paper's "
        "recipe, or NO where no advantage is significant.",
        "A star marks what the paper prints bold: not significant, or more seeds needed than there were.",
        f"{NONE} stands where nothing was run, where there is one seed, or where seeds do not differ and one is ahead.",
        "In brackets: 95% intervals, of the difference from the t-test, of IQM and probability from a bootstrap over "
        "seeds and tasks.",
        *warnings,
    ]
    return Table(title, columns, rows, notes)


def compare_runs(first: Sequence[Run], second: Sequence[Run]) -> Comparison:
    """Compare two agents, with the same resamples every time."""
    return compare(list(first), list(second), np.random.default_rng(0), resamples=RESAMPLES)


def _cells(found: Comparison | None, sets: Sequence[str], seeds: int) -> list[str]:
    """Entries, then what one number says of all sets together."""
    if found is None:
        return [NONE] * (len(sets) + 4)
    entries = [entry(found.sets[name], seeds) for name in sets]
    intervals, test = found.intervals, found.test
    of = (None, None, None) if intervals is None else (intervals[2], intervals[3], intervals[5])
    return [
        *entries,
        _number(test.difference, _t_interval(test), "+"),
        _number(found.better.iqm, of[0]),
        _number(found.worse.iqm, of[1]),
        _number(found.probability_of_improvement, of[2]),
    ]


def _t_interval(test: SeedTest) -> tuple[float, float] | None:
    return None if test.low is None or test.high is None else (test.low, test.high)


def _number(value: float, interval: tuple[float, float] | None, sign: str = "") -> str:
    return f"{value:{sign}.3f}" + ("" if interval is None else f" ({interval[0]:{sign}.3f}, {interval[1]:{sign}.3f})")


def success_rows(results: Mapping[str, Sequence[Run]], training: Mapping[str, Sequence[float]]) -> Table:
    """Final success of several agents: means over seeds with their spread, IQM, and the worst seed."""
    sets = list(dict.fromkeys(name for runs in results.values() for run in runs for name in run.success))
    rows = []
    for label, runs in results.items():
        if not runs:
            rows.append([label, "0", *[NONE] * (len(sets) + 4)])
            continue
        rates = np.array([[run.success[name] for name in sets] for run in runs])  # (seeds, sets)
        means = [_with_spread(rates[:, column]) for column in range(len(sets))]
        known = _with_spread(np.array(training[label])) if training.get(label) else NONE
        whole = [_with_spread(rates.mean(1)), f"{float(iqm(rates)):.3f}", f"{rates.mean(1).min():.3f}"]
        rows.append([label, str(len(runs)), known, *means, *whole])
    notes = ["Means over seeds, with half the width of their 95% t-interval; of two seeds with both values."]
    return Table("Final success", ["", "seeds", "training tasks", *sets, "mean", "IQM", "worst seed"], rows, notes)


def _with_spread(values: np.ndarray) -> str:
    mean, low, high = map(float, seed_spread(values))
    if len(values) == 2:
        return f"{mean:.3f} ({low:.3f}, {high:.3f})"
    return f"{mean:.3f}" + (f" ± {high - mean:.3f}" if len(values) > 1 else "")


def comparison_rows(results: Mapping[str, Sequence[Run]]) -> Table | None:
    """The first agent against all others, on the mean over sets; None where there is nothing to compare."""
    known = {label: runs for label, runs in results.items() if runs}
    if len(known) < 2:
        return None
    first, *others = known
    rows, notes = [], dict[str, None]()
    for label in others:
        try:
            found = compare_runs(known[first], known[label])
        except ValueError as error:  # such as networks of which only some are on both sides
            rows.append([label, str(error), *[NONE] * 4])
            continue
        notes |= dict.fromkeys(found.notes)
        test, better = found.test, found.intervals and found.intervals.probability_of_improvement
        p = NONE if test.p_two_sided is None else f"{test.p_two_sided:.3g}"
        difference = _number(test.difference, _t_interval(test), "+")
        chance = _number(found.probability_of_improvement, better)
        rows.append([label, difference, p, test.name, str(test.seeds_for_power or NONE), chance])
    columns = ["against", "difference", "p", "test", "seeds for power .8", "better with probability"]
    return Table(f"{first} against the others", columns, rows, list(notes))
