"""How long work takes on this machine."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np


def median_seconds(work: Callable[[], Any], seconds: float) -> float:
    """Median duration of one call, after a few that are not timed."""
    for _ in range(3):
        work()
    times: list[float] = []
    end = perf_counter() + seconds
    while perf_counter() < end or len(times) < 5:
        begin = perf_counter()
        work()
        times.append(perf_counter() - begin)
    return float(np.median(times))
