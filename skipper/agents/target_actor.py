"""Agents that walk to targets, as they are evaluated."""

from typing import Generic, Protocol, TypeVar

import numpy as np

from skipper.types import Array, Decision, Plan, TimeStep

Plans = TypeVar("Plans", bound=Plan, covariant=True)


class TargetPolicy(Protocol[Plans]):
    """Decides where to go and how, for a batch of environments."""

    rng: np.random.Generator

    def act(self, timestep: TimeStep, epsilon: float, rng: np.random.Generator) -> Decision:
        """Decide, or take a random action with probability ``epsilon``."""

    def plan(self, observation: Array, goal: Array) -> Plans:
        """Plans for observations and goals (B, W, H, C) in which episodes begin."""


class TargetActor(Generic[Plans]):
    """A nearly greedy policy with its own random stream."""

    policy: TargetPolicy[Plans]

    def __init__(self, policy: TargetPolicy[Plans], epsilon: float) -> None:
        self.policy, self._epsilon = policy, epsilon

    def act(self, timestep: TimeStep) -> Decision:
        """The policy's action, or a random one with probability ``epsilon``."""
        return self.policy.act(timestep, self._epsilon, self.policy.rng)

    def plan(self, observation: Array, goal: Array) -> Plans:
        """What the agent would plan at the beginning of an episode; its state is unchanged."""
        state = self.policy.rng.bit_generator.state
        try:
            return self.policy.plan(observation, goal)
        finally:
            self.policy.rng.bit_generator.state = state
