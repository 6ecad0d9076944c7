"""Agents that do not learn: the floor and the ceiling of every comparison."""

import numpy as np

from skipper.types import Decision, Oracle, TimeStep


class RandomAgent:
    """Every action with the same probability."""

    def __init__(self, actions: int, rng: np.random.Generator) -> None:
        self._actions = actions
        self._rng = rng

    def act(self, timestep: TimeStep) -> Decision:
        """Ignore the observation."""
        return Decision(self._rng.integers(self._actions, size=len(timestep.observation)))


class OptimalAgent:
    """The best action according to ground truth."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    def act(self, timestep: TimeStep) -> Decision:
        """Take the first of the best actions, so that no random number is needed."""
        return Decision(self._oracle.action_values(timestep.observation).argmax(-1))
