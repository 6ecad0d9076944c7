"""k-medoids with forced medoids, which prunes crowded vertices (App., Alg. 2).

The objective is the paper's: the sum over vertices of the distance to the nearest medoid. It is minimised greedily:
add the medoid that lowers the cost most (build), then exchange medoids while that lowers it (swap). Unlike the paper's
alternating search this needs no random start, and it reaches costs at least as low.
"""

import numpy as np

from skipper.runtime.jit import kernel
from skipper.types import Array


@kernel
def _cost(distance, present, kept):
    total = 0.0
    for vertex in range(len(present)):
        if present[vertex]:
            nearest = np.inf
            for medoid in range(len(present)):
                if kept[medoid]:
                    nearest = min(nearest, distance[vertex, medoid])
            total += nearest
    return total


@kernel
def _gain_of_adding(distance, present, nearest, candidate):
    """Decrease of the cost when ``candidate`` becomes a medoid."""
    gain = 0.0
    for vertex in range(len(present)):
        if present[vertex]:
            gain += max(nearest[vertex] - distance[vertex, candidate], 0.0)
    return gain


@kernel
def _build(distance, present, kept, k, farthest):
    """Add the vertex with the largest gain until ``k`` are kept or none is left."""
    count = len(present)
    nearest = np.full(count, farthest)
    number = 0
    for medoid in range(count):
        if kept[medoid]:
            number += 1
            for vertex in range(count):
                nearest[vertex] = min(nearest[vertex], distance[vertex, medoid])
    while number < k:
        best, best_gain = -1, -1.0
        for candidate in range(count):
            if present[candidate] and not kept[candidate]:
                gain = _gain_of_adding(distance, present, nearest, candidate)
                if gain > best_gain:
                    best, best_gain = candidate, gain
        if best < 0:
            break
        kept[best] = True
        number += 1
        for vertex in range(count):
            nearest[vertex] = min(nearest[vertex], distance[vertex, best])


@kernel
def _swap(distance, present, fixed, kept):
    """Exchange medoids for other vertices while that lowers the cost."""
    count = len(present)
    cost = _cost(distance, present, kept)
    improved = True
    while improved:
        improved = False
        for medoid in range(count):
            if not kept[medoid] or fixed[medoid]:
                continue
            best, best_cost = -1, cost - 1e-9
            kept[medoid] = False
            for candidate in range(count):
                if present[candidate] and not kept[candidate] and candidate != medoid:
                    kept[candidate] = True
                    trial = _cost(distance, present, kept)
                    kept[candidate] = False
                    if trial < best_cost:
                        best, best_cost = candidate, trial
            if best >= 0:
                kept[best] = True
                cost = best_cost
                improved = True
            else:
                kept[medoid] = True


@kernel
def _k_medoids(distance, present, fixed, k, kept):
    for problem in range(len(distance)):
        kept[problem] = fixed[problem]
        farthest = distance[problem].max() + 1.0
        _build(distance[problem], present[problem], kept[problem], k, farthest)
        _swap(distance[problem], present[problem], fixed[problem], kept[problem])


def k_medoids(distance: Array, present: Array, fixed: Array, k: int) -> Array:
    """(B, N) bool, ``k`` medoids of the vertices ``present`` (B, N), all ``fixed`` (B, N) ones included.

    ``distance`` (B, N, N) is finite and symmetric. Where fewer than ``k`` are present, all of them are kept.
    """
    B, N, _ = distance.shape  # noqa: N806
    assert distance.shape == (B, N, N), distance.shape
    assert present.shape == fixed.shape == (B, N), (present.shape, fixed.shape)
    assert np.isfinite(distance).all(), "distances must be finite: truncate them before clustering"
    kept = np.zeros((B, N), np.bool_)
    _k_medoids(np.ascontiguousarray(distance, np.float64), present, fixed & present, k, kept)
    return kept
