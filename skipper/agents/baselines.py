"""Agents that do not learn: lower and upper bound of every comparison."""

import numpy as np

from skipper.types import Decision, Oracle, TimeStep


class RandomAgent:
    """Uniformly random actions."""

    def __init__(self, actions: int, rng: np.random.Generator) -> None:
        self._actions = actions
        self._rng = rng

    def act(self, timestep: TimeStep) -> Decision:
        """Ignore the observation."""
        return Decision(self._rng.integers(self._actions, size=len(timestep.observation)))


class OptimalAgent:
    """Optimal actions, from ground truth."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    def act(self, timestep: TimeStep) -> Decision:
        """The first of the optimal actions."""
        return Decision(self._oracle.action_values(timestep.observation).argmax(-1))
