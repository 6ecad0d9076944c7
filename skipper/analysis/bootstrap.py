"""Intervals by a bootstrap that resamples training seeds and tasks."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from skipper.analysis.results_file import Run
from skipper.analysis.statistics import ALPHA, iqm, probability_of_improvement
from skipper.types import Array

BLOCK = 500  # resamples at a time, to bound memory


class Interval(NamedTuple):
    """A 95% percentile interval."""

    low: float
    high: float


class Intervals(NamedTuple):
    """Intervals of what is reported about two agents."""

    mean_first: Interval
    mean_second: Interval
    iqm_first: Interval
    iqm_second: Interval
    difference: Interval
    probability_of_improvement: Interval


def bootstrap_intervals(
    first: list[Run], second: list[Run], shared: bool, resamples: int, rng: np.random.Generator
) -> Intervals:
    """Percentile intervals; ``shared`` says that run k of both sides plays the same network.

    Seeds and tasks are both drawn anew, as factors of a crossed design (the pigeonhole bootstrap of Owen, 2007).
    """
    draws: list[Array] = []
    for x, y in resampled_success(first, second, shared, resamples, rng):
        means = x.mean((1, 2)), y.mean((1, 2))
        draws.append(np.stack([*means, iqm(x), iqm(y), means[0] - means[1], probability_of_improvement(x, y)]))
    limits = np.quantile(np.concatenate(draws, axis=1), [ALPHA / 2, 1 - ALPHA / 2], axis=1)  # (2, statistics)
    return Intervals(*(Interval(float(low), float(high)) for low, high in limits.T))


def resampled_success(
    first: list[Run], second: list[Run], shared: bool, resamples: int, rng: np.random.Generator
) -> Iterator[tuple[Array, Array]]:
    """Blocks of success rates (R, runs, sets) of both sides."""
    for start in range(0, resamples, BLOCK):
        count = min(BLOCK, resamples - start)
        # Tasks, within each evaluation set: one draw for all runs, of either side, that played the same tasks.
        drawn: dict[tuple[str, ...], Array] = {}
        x, y = (_resample_tasks(runs, drawn, count, rng) for runs in (first, second))  # (R, runs, sets)
        # Seeds: one draw for both sides where they share their networks.
        seeds = rng.integers(len(first), size=(count, len(first)))
        others = seeds if shared else rng.integers(len(second), size=(count, len(second)))
        yield np.take_along_axis(x, seeds[:, :, None], axis=1), np.take_along_axis(y, others[:, :, None], axis=1)


def _resample_tasks(
    runs: list[Run], drawn: dict[tuple[str, ...], Array], count: int, rng: np.random.Generator
) -> Array:
    """(R, runs, sets) success rates on drawn tasks; ``drawn`` remembers how often each task was drawn."""
    names = sorted(runs[0].solved)
    success = np.empty((count, len(runs), len(names)))
    for row, run in enumerate(runs):
        for column, name in enumerate(names):
            solved, key = run.solved[name], run.tasks(name)
            if key not in drawn:
                tasks = len(solved)
                drawn[key] = rng.multinomial(tasks, np.full(tasks, 1.0 / tasks), size=count)  # (R, E)
            success[:, row, column] = drawn[key] @ solved / len(solved)
    return success
