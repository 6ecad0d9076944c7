"""Epsilon-greedy exploration."""

from collections.abc import Callable

import numpy as np

from skipper.config import LearningConfig
from skipper.types import Array, Attention, Decision, TimeStep


def linear_epsilon(config: LearningConfig, step: int) -> float:
    """Probability of a random action after ``step`` environment steps."""
    done = min(step / config.epsilon_steps, 1.0)
    return config.epsilon_start + done * (config.epsilon_end - config.epsilon_start)


def explore(greedy: Array, epsilon: float, actions: int, rng: np.random.Generator) -> Array:
    """(B,) greedy actions, each replaced by a uniformly random one with probability ``epsilon``."""
    random = rng.random(len(greedy)) < epsilon
    return np.where(random, rng.integers(actions, size=len(greedy)), greedy)


class EpsilonGreedy:
    """An agent that takes the action of the highest value, or with probability ``epsilon`` a random one."""

    def __init__(
        self,
        values: Callable[[Array], Array],
        epsilon: float,
        rng: np.random.Generator,
        attend: Callable[[Array], Attention | None] | None = None,
    ) -> None:
        """``values`` maps observations (B, W, H, C) to (B, A); ``attend`` says what they depend on."""
        self._values, self._epsilon, self._rng, self._attend = values, epsilon, rng, attend

    def act(self, timestep: TimeStep) -> Decision:
        """The action, with the values of all actions."""
        values = self._values(timestep.observation)
        attention = self._attend(timestep.observation) if self._attend else None
        action = explore(values.argmax(-1), self._epsilon, values.shape[1], self._rng)
        return Decision(action, values=values, attention=attention)
