"""The cross-entropy method over sequences of binary codes (App., "LEAP"): knows no network, it is handed a cost."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skipper.runtime.checks import check_positive, check_shares
from skipper.types import Array


@dataclass(frozen=True)
class SearchConfig:
    """How sequences of subgoals are searched."""

    subgoals: int = 3
    """Subgoals between the current state and the goal."""
    samples: int = 128
    """Sequences drawn in every iteration."""
    elites: int = 16
    """The best of them, from which the next iteration draws."""
    iterations: int = 5
    """Rounds of sampling and refitting."""
    uniform_share: float = 0.01
    """Share of the uniform distribution in what the next iteration draws from."""
    good_enough: float = 1.01
    """Stop when a sequence costs less than this: one step per segment cannot be improved."""

    def __post_init__(self) -> None:
        check_positive(self, "subgoals", "samples", "elites", "iterations")
        check_shares(self, "uniform_share")
        if self.elites > self.samples:
            raise ValueError(f"elites must not exceed the {self.samples} samples, got {self.elites}")


class Found(NamedTuple):
    """The results of B searches."""

    codes: Array  # (B, M) the best sequence of the last iteration
    cost: Array  # (B,) of these
    history: Array  # (I, B) the cost of the best sequence of every iteration, NaN after a search has stopped
    chance: Array  # (B, M, bits) of every bit to be 1, as the last elites have it


def search(
    cost: Callable[[Array, Array], Array], problems: int, bits: int, config: SearchConfig, rng: np.random.Generator
) -> Found:
    """Search sequences of M codes that cost little, for all ``problems`` together.

    ``cost`` maps the numbers of R problems (R,) and sequences (R, P, M) of codes below 2 ** ``bits`` to (R, P).
    """
    place = 1 << np.arange(bits)
    found = Found(
        np.zeros((problems, config.subgoals), np.int64),
        np.full(problems, np.inf),
        np.full((config.iterations, problems), np.nan),
        np.full((problems, config.subgoals, bits), 0.5),
    )
    running = np.arange(problems)
    for iteration in range(config.iterations):
        # Draw sequences; for all problems, so that no draw depends on which of the others go on.
        uniform = rng.random((problems, config.samples, config.subgoals, bits))[running]
        drawn = uniform < found.chance[running, None]
        codes = drawn @ place  # (R, P, M)
        # Keep the best; the result is that of the last iteration, which need not be the best of all.
        costs = cost(running, codes)
        assert costs.shape == codes.shape[:2], (costs.shape, codes.shape)
        order = costs.argsort(-1, kind="stable")
        rows, best = np.arange(len(running)), order[:, 0]
        found.codes[running], found.cost[running] = codes[rows, best], costs[rows, best]
        found.history[iteration, running] = found.cost[running]
        # Draw from the elites next, where something is left to improve.
        elites = np.take_along_axis(drawn, order[:, : config.elites, None, None], axis=1)  # (R, E, M, bits)
        found.chance[running] = 0.5 * config.uniform_share + (1.0 - config.uniform_share) * elites.mean(1)
        running = running[found.cost[running] >= config.good_enough]
        if not len(running):
            break
    return found
