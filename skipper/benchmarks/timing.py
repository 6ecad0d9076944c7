"""Timing of single calls."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np


def median_seconds(work: Callable[[], Any], seconds: float) -> float:
    """Median duration of a call over ``seconds``, after a few untimed ones."""
    for _ in range(3):
        work()
    times: list[float] = []
    end = perf_counter() + seconds
    while perf_counter() < end or len(times) < 5:
        begin = perf_counter()
        work()
        times.append(perf_counter() - begin)
    return float(np.median(times))
