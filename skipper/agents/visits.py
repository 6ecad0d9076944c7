"""What an episode did in which state, for the revisit penalty."""

from typing import NamedTuple

import numpy as np

from skipper.types import Array


class EpisodeVisits(NamedTuple):
    """The states and actions of the current episodes of B environments; the columns change in place."""

    visited: Array  # (B, T) keys of the episode's states so far
    taken: Array  # (B, T) actions that were chosen there, -1 where there is none yet
    length: Array  # (B,) of the episode so far

    @classmethod
    def empty(cls, environments: int, max_steps: int) -> "EpisodeVisits":
        """No actions yet, and room for episodes of ``max_steps`` steps."""
        return cls(
            visited=np.zeros((environments, max_steps), np.int64),
            taken=np.full((environments, max_steps), -1, np.int8),
            length=np.zeros(environments, np.int64),
        )

    def begin_episodes(self, first: Array) -> None:
        """Forget the actions of the last episode where a new one begins, (B,) bool."""
        self.taken[first], self.length[first] = -1, 0

    def record(self, key: Array, action: Array) -> None:
        """Append the actions (B,) chosen in states with ``key`` (B,); after T steps each replaces the last one."""
        rows, index = np.arange(len(action)), np.minimum(self.length, self.taken.shape[1] - 1)
        self.visited[rows, index], self.taken[rows, index] = key, action
        self.length[:] += 1

    def counts(self, rows: Array, key: Array, actions: int) -> Array:
        """(R, N, A) how often each action was chosen in the states ``key`` (R, N) of the environments ``rows`` (R,)."""
        length = int(self.length[rows].max(initial=0))
        here = self.visited[rows, None, :length] == key[..., None]  # (R, N, T)
        taken = self.taken[rows, :length, None] == np.arange(actions)  # (R, T, A)
        return here.astype(np.float32) @ taken.astype(np.float32)

    def factors(self, rows: Array, key: Array, actions: int, penalty: float) -> Array:
        """(R, N, A) of the values of actions: each earlier time takes the share ``penalty``; as in ``counts``."""
        left: Array = (1.0 - penalty) ** self.counts(rows, key, actions)
        return left
