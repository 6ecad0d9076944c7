"""True states in place of imagined ones, for agents with an oracle."""

import numpy as np

from skipper.types import Array, Oracle


def reachable_cells(oracle: Oracle, observation: Array, count: int, rng: np.random.Generator) -> Array:
    """(B, count) cells of random states that can be reached from observations (B, W, H, C), distinct if possible."""
    reachable = oracle.reachable(observation)  # (B, S)
    order = np.where(reachable, rng.random(reachable.shape), 2.0).argsort(-1)  # reachable cells first
    number = np.maximum(reachable.sum(-1, keepdims=True), 1)
    return np.take_along_axis(order, np.arange(count)[None] % number, axis=1)
