"""Timing of single calls."""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from skipper.types import Array


def median_seconds(work: Callable[[], Any], seconds: float) -> float:
    """Median duration of a call over ``seconds``, after a few untimed ones."""
    return float(np.median(seconds_in_turns([work], seconds)))


def seconds_in_turns(works: Sequence[Callable[[], Any]], seconds: float) -> Array:
    """(N, W) durations of W calls that take turns over ``seconds``, so that a machine's changing speed affects all."""
    for _ in range(3):
        for work in works:
            work()
    times: list[list[float]] = []
    end = perf_counter() + seconds
    while perf_counter() < end or len(times) < 5:
        times.append([_seconds(work) for work in works])
    return np.array(times)


def _seconds(work: Callable[[], Any]) -> float:
    begin = perf_counter()
    work()
    return perf_counter() - begin
