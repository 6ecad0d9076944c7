"""Sequences of consecutive states of one episode, for agents that learn recurrent models of it."""

from typing import NamedTuple

import numpy as np

from skipper.replay.store import EpisodeStore
from skipper.types import Array


class Sequences(NamedTuple):
    """B sequences of T states, each with what led to it."""

    observation: Array  # (B, T, W, H, C)
    action: Array  # (B, T) int64, that led to the state; 0 for the first state of an episode
    reward: Array  # (B, T) on arrival; 0 for the first state of an episode
    terminal: Array  # (B, T) bool, the episode terminated with the state


class SequenceSampler:
    """Draws sequences of ``length`` states from episodes that have as many, all episodes equally often."""

    def __init__(self, store: EpisodeStore, length: int) -> None:
        self._store, self._length = store, length

    def ready(self) -> bool:
        """Whether there are episodes."""
        return len(self._store) > 0

    def sample(self, batch: int, rng: np.random.Generator) -> Sequences:
        """``batch`` sequences. A start drawn too late is the last possible one, so endings are frequent."""
        if not self.ready():
            raise ValueError("the episode store holds no episodes yet")
        # Draw episodes, and where to start in each.
        numbers = self._store.number(rng.integers(len(self._store), size=batch))  # (B,)
        states, first = self._store.states[numbers], self._store.first[numbers]
        assert states.min() >= self._length, f"an episode of {states.min()} states is shorter than a sequence"
        start = first + np.minimum(rng.integers(states + 1), states - self._length)  # (B,) slots
        slots = start[:, None] + np.arange(self._length)  # (B, T)
        # What led to a state is stored with the state before it.
        begins, before = slots == first[:, None], np.maximum(slots - 1, 0)
        seen = self._store.observations(slots.ravel())
        return Sequences(
            seen.reshape(*slots.shape, *seen.shape[1:]),
            np.where(begins, 0, self._store.action[before]).astype(np.int64),
            np.where(begins, 0.0, self._store.reward[before]).astype(np.float32),
            np.where(begins, False, self._store.terminated[before]),
        )
