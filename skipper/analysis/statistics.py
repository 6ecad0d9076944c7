"""Is one agent better than another? Significance tests over tasks and over seeds."""

import json
import math
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skipper.types import Array

MOST_DIVISIONS = 1_000_000


class Row(NamedTuple):
    """The result of a run on one evaluation set."""

    success: float  # rate
    episodes: int


Results = dict[str, Row]  # by evaluation set


class Comparison(NamedTuple):
    """The outcome; p-values are of the hypothesis that the first agent is not better."""

    better: list[float]  # mean success over evaluation sets, one number per run
    worse: list[float]
    difference: float
    p_tasks: float
    p_seeds: float


def read_results(path: Path) -> Results:
    """The output of ``skipper evaluate --json`` in a file, without training tasks."""
    try:
        levels = json.loads(path.read_text())
        rows = {level: Row(float(row["success"]), int(row["episodes"])) for level, row in levels.items()}
    except (OSError, ValueError, AttributeError, TypeError, KeyError) as error:
        raise ValueError(f"{path} does not hold the output of `skipper evaluate --json`: {error!r}") from error
    rows.pop("training", None)
    if not rows or not all(0.0 <= row.success <= 1.0 and row.episodes > 0 for row in rows.values()):
        raise ValueError(f"{path} does not hold success rates on unseen tasks")
    return rows


def compare(better: list[Results], worse: list[Results]) -> Comparison:
    """Both tests, for runs on the same evaluation sets."""
    if not better or not worse:
        raise ValueError("name at least one file of each agent")
    levels = set(better[0])
    if any(set(results) != levels for results in better + worse):
        raise ValueError("all files must be of the same evaluation sets")
    one, two = ([float(np.mean([row.success for row in run.values()])) for run in runs] for runs in (better, worse))
    return Comparison(
        one,
        two,
        difference=float(np.mean(one) - np.mean(two)),
        p_tasks=_over_tasks(better, worse, sorted(levels)),
        p_seeds=_over_seeds(np.array(one), np.array(two)),
    )


def _over_tasks(better: list[Results], worse: list[Results], levels: list[str]) -> float:
    """A z-test of the sum of the differences of rates over all sets; episodes are taken as independent."""
    difference = variance = 0.0
    for level in levels:
        (one, n_one), (two, n_two) = (_pooled([run[level] for run in runs]) for runs in (better, worse))
        share = (one * n_one + two * n_two) / (n_one + n_two)
        difference += one - two
        variance += share * (1.0 - share) * (1.0 / n_one + 1.0 / n_two)
    if variance == 0.0:
        return 1.0  # all rates are 0, or all are 1
    return math.erfc(difference / math.sqrt(2.0 * variance)) / 2.0


def _pooled(rows: list[Row]) -> Row:
    """Success rate and number of all episodes of several runs."""
    count = sum(row.episodes for row in rows)
    return Row(sum(row.success * row.episodes for row in rows) / count, count)


def _over_seeds(better: Array, worse: Array) -> float:
    """A permutation test: the share of all divisions of the runs with at least the same lead of the first group."""
    runs, count = np.concatenate([better, worse]), len(better)
    if math.comb(len(runs), count) > MOST_DIVISIONS:
        raise ValueError(f"{len(better)} and {len(worse)} runs have too many divisions to try all of them")
    ahead = better.mean() - worse.mean()
    divisions = []
    for chosen in combinations(range(len(runs)), count):
        others = np.delete(runs, chosen)
        divisions.append(runs[list(chosen)].mean() - others.mean() >= ahead - 1e-12)
    return float(np.mean(divisions))
