"""Value iteration over options on a proxy problem (App., "Planning")."""

from typing import NamedTuple

import numpy as np

from skipper.runtime.jit import kernel
from skipper.types import Array

TIE = 1e-5


class Values(NamedTuple):
    """The solution of B proxy problems with N vertices."""

    action: Array  # (B, N, N) Q, the value of aiming from the first vertex at the second
    vertex: Array  # (B, N) V


def value_iteration(reward: Array, discount: Array, sweeps: int) -> Values:
    """``sweeps`` times Q = R + Gamma V and V = max Q, from V = 0; pruned edges are zero in both matrices."""
    assert reward.shape == discount.shape, (reward.shape, discount.shape)
    q, v = np.zeros(reward.shape), np.zeros(reward.shape[:-1])
    _sweep(reward, discount, sweeps, q, v)
    return Values(q, v)


@kernel
def _sweep(reward, discount, sweeps, q, v):
    """Fill ``q`` (B, N, N) and ``v`` (B, N), which begin with zeros."""
    before = np.empty(v.shape[1])
    for problem in range(len(v)):
        for _ in range(sweeps):
            before[:] = v[problem]
            for one in range(v.shape[1]):
                best = -np.inf
                for two in range(v.shape[1]):
                    value = reward[problem, one, two] + discount[problem, one, two] * before[two]
                    q[problem, one, two] = value
                    best = max(best, value)
                v[problem, one] = best
            if np.array_equal(before, v[problem]):
                break  # nothing would change any more


def choose_target(q: Array, possible: Array, distance: Array) -> Array:
    """(B,) the best ``possible`` target by value ``q`` (B, N); ties go to the nearest. -1 where none is possible."""
    assert q.shape == possible.shape == distance.shape, (q.shape, possible.shape, distance.shape)
    worth = np.where(possible, q, -np.inf)
    tied = possible & (worth >= worth.max(-1, keepdims=True) - TIE)
    nearest = np.where(tied, distance, np.inf).argmin(-1)
    return np.where(possible.any(-1), nearest, -1)
