"""Sequences of consecutive states, for agents that learn recurrent models of them."""

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
    first: Array  # (B, T) bool, an episode begins with the state


class SequenceSampler:
    """Draws sequences of ``length`` states.

    They lie within episodes that have as many states, all episodes equally often. Or they go on ``across_episodes``:
    they begin with any state, all equally often, and continue with other episodes where one ends.
    """

    def __init__(self, store: EpisodeStore, length: int, across_episodes: bool = False) -> None:
        self._store, self._length, self._across = store, length, across_episodes

    def ready(self) -> bool:
        """Whether there are episodes."""
        return len(self._store) > 0

    def sample(self, batch: int, rng: np.random.Generator) -> Sequences:
        """``batch`` sequences."""
        if not self.ready():
            raise ValueError("the episode store holds no episodes yet")
        slots, begins = (self._slots_across if self._across else self._slots_within)(batch, rng)
        # What led to a state is stored with the state before it.
        before = np.maximum(slots - 1, 0)
        seen = self._store.observations(slots.ravel())
        return Sequences(
            seen.reshape(*slots.shape, *seen.shape[1:]),
            np.where(begins, 0, self._store.action[before]).astype(np.int64),
            np.where(begins, 0.0, self._store.reward[before]).astype(np.float32),
            np.where(begins, False, self._store.terminated[before]),
            begins,
        )

    def _slots_within(self, batch: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """(B, T) slots in one episode each. A start drawn too late is the last possible one: endings are frequent."""
        numbers = self._store.number(rng.integers(len(self._store), size=batch))  # (B,)
        states, first = self._store.states[numbers], self._store.first[numbers]
        assert states.min() >= self._length, f"an episode of {states.min()} states is shorter than a sequence"
        start = first + np.minimum(rng.integers(states + 1), states - self._length)  # (B,)
        slots = start[:, None] + np.arange(self._length)
        return slots, slots == first[:, None]

    def _slots_across(self, batch: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """(B, T) slots that begin anywhere and go on with random episodes; and where episodes begin."""
        store, T = self._store, self._length  # noqa: N806
        # Draw where to begin: any of the stored states.
        stored = store.number(np.arange(len(store)))
        ends = store.states[stored].cumsum()
        drawn = rng.integers(ends[-1], size=batch)
        index = np.searchsorted(ends, drawn, side="right")
        # Draw the episodes that follow, enough of them even if they are the shortest possible.
        numbers = store.number(rng.integers(len(store), size=(batch, T // 2 + 1)))  # (B, P)
        numbers[:, 0] = stored[index]
        first, length = store.first[numbers], store.states[numbers]  # (B, P)
        skipped = drawn - (ends[index] - length[:, 0])  # (B,) states of the first episode before the start
        # Put these pieces one behind the other.
        pieces = length - np.pad(skipped[:, None], ((0, 0), (0, T // 2)))
        until = pieces.cumsum(1)  # (B, P) steps at which they end
        step = np.arange(T)
        piece = (step[:, None] >= until[:, None]).sum(-1)  # (B, T)
        at = np.take_along_axis(first + length - until, piece, 1) + step  # (B, T)
        return at, at == np.take_along_axis(first, piece, 1)
