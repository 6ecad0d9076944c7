"""Is one agent better than another? The tests that are valid for how the runs were made."""

from typing import Any, NamedTuple

import numpy as np

from skipper.analysis.bootstrap import Intervals, bootstrap_intervals
from skipper.analysis.results_file import Run, check_side, match_networks
from skipper.analysis.statistics import McNemar, SeedTest, iqm, mcnemar, paired, probability_of_improvement, welch
from skipper.config import FIRST_REPORTED_SEED
from skipper.types import Array

FEW_SEEDS = 10  # with fewer, the bootstrap's intervals are clearly too narrow (docs/results.md)


class Side(NamedTuple):
    """One agent: success rates of its runs."""

    agent: str
    success: dict[str, list[float]]  # by evaluation set, one number per run
    means: list[float]  # over sets, one number per run
    mean: float
    iqm: float


class Comparison(NamedTuple):
    """Two agents compared; ``notes`` say what could not be computed, and what the numbers do not show."""

    better: Side
    worse: Side
    shared_networks: bool
    shared_tasks: bool | None  # None: the files do not say
    test: SeedTest  # of the mean over sets
    sets: dict[str, SeedTest]  # of each set alone
    probability_of_improvement: float
    intervals: Intervals | None
    mcnemar: McNemar | None
    notes: list[str]


def compare(
    better: list[Run], worse: list[Run], rng: np.random.Generator, pair_in_order: bool = False, resamples: int = 10_000
) -> Comparison:
    """Compare two agents, each with a list of runs on the same evaluation sets."""
    names = _common_sets(better, worse)
    for runs in (better, worse):
        check_side(runs)
    # Runs that share their networks are paired, all others independent.
    matched = match_networks(better, worse, pair_in_order)
    worse = worse if matched is None else matched
    shared_networks, test = matched is not None, welch if matched is None else paired
    x, y = (np.array([[run.success[name] for name in names] for run in runs]) for runs in (better, worse))  # (runs, S)
    # Tasks can be resampled only where files hold every outcome.
    complete = all(run.solved for run in (*better, *worse))
    shared_tasks = _tasks(better, names) == _tasks(worse, names) if complete else None
    intervals = bootstrap_intervals(better, worse, shared_networks, resamples, rng) if complete else None
    found = Comparison(
        better=_side(better, names, x),
        worse=_side(worse, names, y),
        shared_networks=shared_networks,
        shared_tasks=shared_tasks,
        test=test(x.mean(1), y.mean(1)),
        sets={name: test(x[:, column], y[:, column]) for column, name in enumerate(names)},
        probability_of_improvement=float(probability_of_improvement(x, y)),
        intervals=intervals,
        mcnemar=_fixed_networks(better, worse, names) if shared_tasks else None,
        notes=[],
    )
    return found._replace(notes=_notes(found, better, worse))


def _common_sets(better: list[Run], worse: list[Run]) -> list[str]:
    if not better or not worse:
        raise ValueError("name at least one file of each agent")
    for run in (*better, *worse):
        if set(run.success) != set(better[0].success):
            here, there = (", ".join(sorted(each.success)) for each in (better[0], run))
            raise ValueError(
                f"all files must be of the same evaluation sets: {better[0].path} has {here}; {run.path} has {there}"
            )
        if run.about and better[0].about and run.about["env"] != better[0].about["env"]:
            raise ValueError(f"{better[0].path} and {run.path} are of different environments")
    return sorted(better[0].success)


def _side(runs: list[Run], names: list[str], success: Array) -> Side:
    return Side(
        agent=str(runs[0].about.get("agent", "unknown")),
        success={name: success[:, column].tolist() for column, name in enumerate(names)},
        means=success.mean(1).tolist(),
        mean=float(success.mean()),
        iqm=float(iqm(success)),
    )


def _tasks(runs: list[Run], names: list[str]) -> set[tuple[str, ...]]:
    return {run.tasks(name) for run in runs for name in names}


def _fixed_networks(better: list[Run], worse: list[Run], names: list[str]) -> McNemar | None:
    """A test of one network against one other, on the same tasks."""
    if len(better) > 1 or len(worse) > 1:
        return None
    first, second = (np.concatenate([run.solved[name] for name in names]) for run in (better[0], worse[0]))
    return mcnemar(first, second)


def _notes(found: Comparison, better: list[Run], worse: list[Run]) -> list[str]:
    runs, fewest = [*better, *worse], min(len(better), len(worse))
    notes = []
    if fewest < 2:
        notes.append("One run on a side: no test over seeds is valid.")
        if any(len(side) == 1 and not side[0].untrained for side in (better, worse)):
            notes.append("All numbers are about this one network; another training seed may turn the result around.")
    elif found.test.t is None:
        notes.append("Seeds do not differ (or differ equally on both sides), so that t is not defined.")
    if not all(run.about for run in runs):
        notes.append("Files of older versions hold no outcomes of single tasks: no bootstrap intervals.")
        if not found.shared_networks:
            notes.append("They do not name networks either: if the sides share theirs, only --paired is valid.")
    if found.shared_tasks is False:
        notes.append("The sides played different tasks: the test over seeds does not count how tasks differ.")
    if found.intervals is not None and 1 < fewest < FEW_SEEDS:
        notes.append(
            f"With {fewest} seeds the bootstrap's intervals are too narrow; prefer the interval of the t-test."
        )
    if any(_for_tuning(run) for run in runs):
        notes.append(
            "Some files are of the split tuning, or of training or evaluation seeds below "
            f"{FIRST_REPORTED_SEED}: these numbers are for choosing settings, not for reports."
        )
    return notes


def _for_tuning(run: Run) -> bool:
    seeds = [run.about.get(key) for key in ("seed", "evaluation_seed")]
    tuned = any(isinstance(seed, int) and seed < FIRST_REPORTED_SEED for seed in seeds)
    return bool(run.about) and (tuned or run.about["split"] == "tuning")


def as_json(found: Comparison) -> dict[str, Any]:
    """The comparison as JSON values."""
    return found._asdict() | {
        "better": found.better._asdict(),
        "worse": found.worse._asdict(),
        "difference": found.test.difference,
        "test": found.test._asdict(),
        "sets": {name: test._asdict() for name, test in found.sets.items()},
        "intervals": found.intervals._asdict() if found.intervals is not None else None,
        "mcnemar": found.mcnemar._asdict() if found.mcnemar is not None else None,
    }
