"""Epsilon-greedy actions, and the revisit penalty on their values."""

from collections.abc import Callable

import numpy as np

from skipper.agents.visits import EpisodeVisits
from skipper.config import LearningConfig
from skipper.types import Array, Attention, Decision, EnvironmentSpec, TimeStep


def linear_epsilon(config: LearningConfig, step: int) -> float:
    """Probability of a random action after ``step`` environment steps."""
    done = min(step / config.epsilon_steps, 1.0)
    return config.epsilon_start + done * (config.epsilon_end - config.epsilon_start)


def explore(greedy: Array, epsilon: float, actions: int, rng: np.random.Generator) -> Array:
    """(B,) greedy actions, each replaced by a uniformly random one with probability ``epsilon``."""
    random = rng.random(len(greedy)) < epsilon
    return np.where(random, rng.integers(actions, size=len(greedy)), greedy)


class RevisitPenalty:
    """Lowers the values of actions that an episode already took in the same state; not in the paper.

    Values must not be negative.
    """

    def __init__(self, penalty: float, spec: EnvironmentSpec) -> None:
        """Each earlier time takes the share ``penalty`` of the value."""
        self._penalty, self._spec = penalty, spec
        self._visits = EpisodeVisits.empty(0, spec.longest)
        self._key = np.empty(0, np.int64)

    def penalised(self, values: Array, timestep: TimeStep) -> Array:
        """(B, A) values, lowered by the visits of the current episodes; ``record`` follows."""
        B, actions = values.shape  # noqa: N806
        assert values.min() >= 0.0, "a share of a negative value would reward visits"
        if len(self._visits.length) != B:
            self._visits = EpisodeVisits.empty(B, self._spec.longest)
        self._visits.begin_episodes(timestep.first)
        self._key = self._spec.state_key(timestep.observation)
        factors = self._visits.factors(np.arange(B), self._key[:, None], actions, self._penalty)[:, 0]  # (B, A)
        lowered: Array = values * factors
        return lowered

    def record(self, action: Array) -> None:
        """Remember the actions (B,) that were taken in the states of ``penalised``."""
        self._visits.record(self._key, action)


class EpsilonGreedy:
    """An agent that takes the action of the highest value, or with probability ``epsilon`` a random one."""

    def __init__(
        self,
        values: Callable[[Array], Array],
        epsilon: float,
        rng: np.random.Generator,
        *,
        revisits: RevisitPenalty | None = None,
        attend: Callable[[Array], Attention | None] | None = None,
    ) -> None:
        """``values`` maps observations (B, W, H, C) to (B, A); ``attend`` says what they depend on."""
        self._values, self._epsilon, self._rng = values, epsilon, rng
        self._revisits, self._attend = revisits, attend

    def act(self, timestep: TimeStep) -> Decision:
        """The action, with the values of all actions."""
        values = self._values(timestep.observation)
        # Lower the values of what the episode already did in these states.
        if self._revisits:
            values = self._revisits.penalised(values, timestep)
        action = explore(values.argmax(-1), self._epsilon, values.shape[1], self._rng)
        if self._revisits:
            self._revisits.record(action)
        attention = self._attend(timestep.observation) if self._attend else None
        return Decision(action, values=values, attention=attention)
