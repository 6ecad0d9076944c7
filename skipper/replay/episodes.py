"""Finished episodes, and the unfinished ones of a batch of environments."""

from typing import NamedTuple

import numpy as np

from skipper.types import Array, Transition


class Episode(NamedTuple):
    """A finished episode of T transitions."""

    observation: Array  # (T + 1, ...) uint8
    action: Array  # (T,)
    reward: Array  # (T,)
    terminated: bool  # whether the last state is terminal; otherwise the episode was truncated


class EpisodeBuilder:
    """Collects the transitions of B environments and returns their episodes as they end."""

    def __init__(self, environments: int, longest: int, shape: tuple[int, ...]) -> None:
        self._observation = np.zeros((environments, longest + 1, *shape), np.uint8)
        self._action = np.zeros((environments, longest), np.int64)
        self._reward = np.zeros((environments, longest), np.float32)
        self._steps = np.zeros(environments, np.int64)

    def append(self, transition: Transition) -> list[Episode]:
        """Add one transition of every environment; return the episodes that it ended, in order."""
        rows, steps = np.arange(len(self._steps)), self._steps
        if steps.max() >= self._action.shape[1]:
            raise ValueError(f"an episode is longer than the {self._action.shape[1]} steps that were announced")
        self._observation[rows, steps] = transition.observation
        self._observation[rows, steps + 1] = transition.next_observation
        self._action[rows, steps] = transition.action
        self._reward[rows, steps] = transition.reward
        self._steps += 1
        ended = np.flatnonzero(transition.terminated | transition.truncated)
        episodes = [self._episode(int(row), bool(transition.terminated[row])) for row in ended]
        self._steps[ended] = 0
        return episodes

    def _episode(self, row: int, terminated: bool) -> Episode:
        steps = int(self._steps[row])
        return Episode(
            self._observation[row, : steps + 1].copy(),
            self._action[row, :steps].copy(),
            self._reward[row, :steps].copy(),
            terminated,
        )

    def state_dict(self) -> dict[str, Array]:
        """The unfinished episodes."""
        return {
            "observation": self._observation.copy(),
            "action": self._action.copy(),
            "reward": self._reward.copy(),
            "steps": self._steps.copy(),
        }

    def load_state_dict(self, state: dict[str, Array]) -> None:
        """Continue the saved episodes."""
        self._observation[:] = state["observation"]
        self._action[:] = state["action"]
        self._reward[:] = state["reward"]
        self._steps[:] = state["steps"]
