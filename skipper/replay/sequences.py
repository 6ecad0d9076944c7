"""Sequences of consecutive transitions of one episode, for agents that learn recurrent models of it."""

from typing import NamedTuple

import numpy as np

from skipper.replay.store import EpisodeStore
from skipper.types import Array


class Sequences(NamedTuple):
    """B sequences of T transitions."""

    observation: Array  # (B, T + 1, W, H, C)
    action: Array  # (B, T)
    reward: Array  # (B, T)
    terminated: Array  # (B, T) bool


class SequenceSampler:
    """Draws windows of ``length`` transitions uniformly; episodes that are shorter are never drawn."""

    def __init__(self, store: EpisodeStore, length: int) -> None:
        self._store, self._length = store, length

    def too_short(self) -> int:
        """Number of stored episodes with fewer transitions than a sequence."""
        return len(self._store) - len(self._long_enough()[0])

    def ready(self) -> bool:
        """Whether any episode is long enough."""
        return len(self._long_enough()[0]) > 0

    def sample(self, batch: int, rng: np.random.Generator) -> Sequences:
        """``batch`` windows; each possible window of each episode is equally likely."""
        first, windows = self._long_enough()
        if not len(first):
            raise ValueError(f"no stored episode has the {self._length} transitions of a sequence")
        # Number all windows of all episodes, and draw from them.
        drawn = rng.integers(windows.sum(), size=batch)
        ends = np.cumsum(windows)
        episode = np.searchsorted(ends, drawn, side="right")
        start = first[episode] + drawn - (ends - windows)[episode]  # (B,) slots
        slots = start[:, None] + np.arange(self._length + 1)  # (B, T + 1)
        states, steps = self._store.observations(slots.ravel()), slots[:, :-1]
        return Sequences(
            states.reshape(batch, self._length + 1, *states.shape[1:]),
            self._store.action[steps].astype(np.int64),
            self._store.reward[steps],
            self._store.terminated[steps],
        )

    def _long_enough(self) -> tuple[Array, Array]:
        """First slots of the episodes that are long enough, and the number of windows in each."""
        episodes = np.fromiter(self._store.numbers(), np.int64)
        windows = self._store.states[episodes] - self._length
        return self._store.first[episodes][windows > 0], windows[windows > 0]
