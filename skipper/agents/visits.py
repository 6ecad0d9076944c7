"""What an episode did in which state, for the revisit penalty."""

import numpy as np

from skipper.types import Array


class EpisodeVisits:
    """The states and actions of the current episodes of B environments."""

    def __init__(self, environments: int, max_steps: int) -> None:
        """No actions yet, and room for episodes of ``max_steps`` steps."""
        self._visited = np.zeros((environments, max_steps), np.int64)  # keys of the states so far
        self._taken = np.full((environments, max_steps), -1, np.int8)  # actions there, -1 where there is none yet
        self._length = np.zeros(environments, np.int64)

    def __len__(self) -> int:
        """Number of environments."""
        return len(self._length)

    def begin_episodes(self, first: Array) -> None:
        """Forget the actions of the last episode where a new one begins, (B,) bool."""
        self._taken[first], self._length[first] = -1, 0

    def record(self, key: Array, action: Array) -> None:
        """Append the actions (B,) chosen in states with ``key`` (B,); beyond ``max_steps`` they replace the last."""
        rows, index = np.arange(len(action)), np.minimum(self._length, self._taken.shape[1] - 1)
        self._visited[rows, index], self._taken[rows, index] = key, action
        self._length += 1

    def counts(self, rows: Array, key: Array, actions: int) -> Array:
        """(R, N, A) how often each action was chosen in the states ``key`` (R, N) of the environments ``rows`` (R,)."""
        length = int(self._length[rows].max(initial=0))
        here = self._visited[rows, None, :length] == key[..., None]  # (R, N, T)
        taken = self._taken[rows, :length, None] == np.arange(actions)  # (R, T, A)
        return here.astype(np.float32) @ taken.astype(np.float32)
