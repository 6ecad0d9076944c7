"""k-medoids with medoids that must be kept: which vertices of a crowded graph stay (App., Alg. 2).

Batched over problems in one kernel. The objective is the paper's: the sum over vertices of the distance to the nearest
medoid. It is minimised by adding, greedily, the medoid that helps most, and then swapping while a swap helps, which
needs no random start and ends in a cost that the alternating search of the paper does not beat.
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
    """By how much the cost falls when ``candidate`` becomes a medoid too."""
    gain = 0.0
    for vertex in range(len(present)):
        if present[vertex]:
            gain += max(nearest[vertex] - distance[vertex, candidate], 0.0)
    return gain


@kernel
def _build(distance, present, kept, k, farthest):
    """Add the most helpful vertex until ``k`` are kept or none is left."""
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
    """Exchange a medoid for another vertex as long as that lowers the cost."""
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
    """(B, N) bool, the ``k`` vertices that are kept of those ``present`` (B, N), among them all that are ``fixed``.

    ``distance`` (B, N, N) is finite and symmetric. Where fewer than ``k`` are present, all of them are kept.
    """
    B, N, _ = distance.shape  # noqa: N806
    assert distance.shape == (B, N, N), distance.shape
    assert present.shape == fixed.shape == (B, N), (present.shape, fixed.shape)
    assert np.isfinite(distance).all(), "distances must be cut off before clustering"
    kept = np.zeros((B, N), np.bool_)
    _k_medoids(np.ascontiguousarray(distance, np.float64), present, fixed & present, k, kept)
    return kept
