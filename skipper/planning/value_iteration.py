"""Value iteration over options on a proxy problem (App., "Planning")."""

from typing import NamedTuple

import numpy as np

from skipper.runtime.jit import kernel
from skipper.types import Array

TIE = 1e-5


class Values(NamedTuple):
    """The solution of B proxy problems with N vertices."""

    action: Array  # (B, N, N) Q, the value of going from the first vertex to the second
    vertex: Array  # (B, N) V


def value_iteration(reward: Array, discount: Array, sweeps: int) -> Values:
    """``sweeps`` times Q = R + Gamma V and V = max Q, from V = 0; pruned edges are 0 in both matrices."""
    assert reward.shape == discount.shape, (reward.shape, discount.shape)
    q, v = np.zeros(reward.shape), np.zeros(reward.shape[:-1])
    _sweep(reward, discount, sweeps, q, v)
    return Values(q, v)


@kernel
def _sweep(reward, discount, sweeps, q, v):
    """Fill ``q`` (B, N, N) and ``v`` (B, N), both 0 at the beginning."""
    previous = np.empty(v.shape[1])
    for problem in range(len(v)):
        for _ in range(sweeps):
            previous[:] = v[problem]
            for source in range(v.shape[1]):
                best = -np.inf
                for target in range(v.shape[1]):
                    value = reward[problem, source, target] + discount[problem, source, target] * previous[target]
                    q[problem, source, target] = value
                    best = max(best, value)
                v[problem, source] = best
            if np.array_equal(previous, v[problem]):
                break  # converged


def choose_target(q: Array, possible: Array, distance: Array) -> Array:
    """(B,) index of the ``possible`` target (B, N) with the highest value; ties go to the nearest, -1 if none is."""
    assert q.shape == possible.shape == distance.shape, (q.shape, possible.shape, distance.shape)
    worth = np.where(possible, q, -np.inf)
    tied = possible & (worth >= worth.max(-1, keepdims=True) - TIE)
    nearest = np.where(tied, distance, np.inf).argmin(-1)
    return np.where(possible.any(-1), nearest, -1)
