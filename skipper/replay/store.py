"""The episode store: whole episodes in a ring of states. It holds all experience of a run; samplers read it."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from skipper.replay.episodes import Episode
from skipper.runtime.hashing import content_keys
from skipper.runtime.jit import kernel
from skipper.types import Array

NO_EPISODE = -1
NO_TASK = -1
TRIES = 256  # random episodes that are tried to find one of the same task, or one with a reward


class EpisodeListener(Protocol):
    """A sampler that keeps data of its own for every stored episode."""

    def added(self, episode: int) -> None:
        """The episode of this number is now in the store."""

    def evicted(self, episode: int) -> None:
        """The episode of this number, the oldest one, leaves the store."""

    def cleared(self) -> None:
        """All episodes have left the store."""


class EpisodeStore:
    """A ring of states that holds whole episodes and evicts the oldest ones when it needs room.

    A slot is the index of a state in the ring. The columns ``action``, ``reward`` and ``terminated`` describe the
    transition that starts in a slot, ``key`` its state. Episode number n has ``states[n]`` states, in consecutive
    slots from ``first[n]``; numbers are reused.
    """

    def __init__(
        self, capacity: int, shape: tuple[int, ...], state_key: Callable[[Array], Array] = content_keys
    ) -> None:
        """``capacity`` is the number of states, ``shape`` that of an observation, ``state_key`` the spec's."""
        self._shape, self._state_key = shape, state_key
        # np.zeros commits memory only where it is written: a large capacity costs nothing until it is used.
        self._rows = np.zeros((capacity, int(np.prod(shape))), np.uint8)
        self.action = np.zeros(capacity, np.int16)
        self.reward = np.zeros(capacity, np.float32)
        self.terminated = np.zeros(capacity, np.bool_)
        self.key = np.zeros(capacity, np.int64)
        self._episode = np.full(capacity, NO_EPISODE, np.int32)  # the number of each slot's episode
        self.first = np.zeros(capacity // 2 + 1, np.int64)  # an episode has two states or more
        self.states = np.zeros_like(self.first)
        self.task = np.full(len(self.first), NO_TASK, np.int64)
        self._oldest = self._count = self._head = 0
        # How far each ring was ever written: the rest is not saved.
        self._used_slots = self.used_numbers = 0
        self._listeners: list[EpisodeListener] = []

    def __len__(self) -> int:
        """Number of stored episodes."""
        return self._count

    @property
    def capacity(self) -> int:
        """Number of states for which there is room."""
        return len(self._rows)

    @property
    def max_episodes(self) -> int:
        """Episode numbers are smaller than this."""
        return len(self.first)

    def numbers(self) -> Iterator[int]:
        """Numbers of the stored episodes, oldest first."""
        return ((self._oldest + index) % self.max_episodes for index in range(self._count))

    def number(self, index: Array) -> Array:
        """Numbers of the episodes at ``index``, counted from the oldest."""
        number: Array = (self._oldest + index) % self.max_episodes
        return number

    def listen(self, listener: EpisodeListener) -> None:
        """Tell ``listener`` of all episodes that are added and evicted from now on."""
        assert not self._count, "listeners must know every episode"
        self._listeners.append(listener)

    # Writing

    def add(self, episode: Episode, task: int = NO_TASK) -> None:
        """Store an episode; ``task`` is a number that episodes of the same task share, where it is known."""
        states, steps = len(episode.observation), len(episode.action)
        if states > self.capacity:
            raise ValueError(f"an episode of {states} states does not fit into a capacity of {self.capacity}")
        first = self._make_room(states)
        number = (self._oldest + self._count) % self.max_episodes
        slots = slice(first, first + states)
        self._rows[slots] = episode.observation.reshape(states, -1)
        self.key[slots] = self._state_key(episode.observation)
        self.action[first : first + steps] = episode.action
        self.reward[first : first + steps] = episode.reward
        self.terminated[slots] = False
        self.terminated[first + steps - 1] = episode.terminated
        self._episode[slots] = number
        self.first[number], self.states[number], self.task[number] = first, states, task
        self._count += 1
        self._head = first + states
        self._used_slots = max(self._used_slots, self._head)
        self.used_numbers = max(self.used_numbers, number + 1)
        for listener in self._listeners:
            listener.added(number)

    def _make_room(self, states: int) -> int:
        """The first of ``states`` consecutive free slots, after evicting the oldest episodes from them."""
        first = self._head
        if first + states > self.capacity:
            # An episode does not wrap around. The episodes behind the head are the oldest, so they go first.
            while self._count and self.first[self._oldest] >= first:
                self._evict()
            first = 0
        while self._count and first <= self.first[self._oldest] < first + states:
            self._evict()
        return first

    def _evict(self) -> None:
        number = self._oldest
        for listener in self._listeners:
            listener.evicted(number)
        first = self.first[number]
        self._episode[first : first + self.states[number]] = NO_EPISODE
        self._oldest = (number + 1) % self.max_episodes
        self._count -= 1

    def clear(self) -> None:
        """Evict all episodes."""
        while self._count:
            self._evict()
        self._oldest = self._head = self._used_slots = self.used_numbers = 0
        for listener in self._listeners:
            listener.cleared()

    # Reading

    def observations(self, slots: Array) -> Array:
        """(M, ...) observations of ``slots`` (M,)."""
        return self._rows[slots].reshape(len(slots), *self._shape)

    def keys_of(self, episode: int) -> Array:
        """(T + 1,) state keys of one episode."""
        first = self.first[episode]
        return self.key[first : first + self.states[episode]]

    def random_episodes(self, count: int, rng: np.random.Generator) -> Array:
        """(count,) numbers of random episodes, each as likely as it has states."""
        if not self._count:
            raise ValueError("the episode store holds no episodes yet")
        episodes = np.empty(0, np.int32)
        while len(episodes) < count:  # nearly all slots belong to an episode: one round is usually enough
            drawn = self._episode[rng.integers(self._used_slots, size=2 * count)]
            episodes = np.concatenate([episodes, drawn[drawn != NO_EPISODE]])
        return episodes[:count]

    def another_of_task(self, episode: int, rng: np.random.Generator) -> int:
        """The number of another random episode of the same task, or NO_EPISODE where none is found."""
        return int(_another(self.task, episode, rng.random(TRIES), self._oldest, self._count))

    def random_rewarded(self, rng: np.random.Generator) -> int:
        """The number of a random episode whose last step was rewarded, or NO_EPISODE where none is found."""
        last = self.reward, self.first, self.states
        return int(_rewarded(*last, rng.random(TRIES), self._oldest, self._count))

    def another_visit(self, slot: int, rng: np.random.Generator) -> int:
        """A random slot in which another episode was in the state of ``slot``, and went on; ``slot`` without one."""
        return int(_visit(self.key[: self._used_slots], self._episode, slot, rng.random()))

    def contains(self, keys: Array) -> Array:
        """Whether any stored episode was in the states with these keys, of any shape; bool."""
        found = np.zeros(keys.size, bool)
        order = np.argsort(keys, axis=None)
        _find(self.key[: self._used_slots], self._episode, keys.ravel()[order], found)
        found[order] = found.copy()
        return found.reshape(keys.shape)

    def episode_of(self, slots: Array | int) -> Array:
        """Numbers of the episodes of ``slots``."""
        return self._episode[slots]

    # Saving

    _COLUMNS = ("_rows", "action", "reward", "terminated", "key", "_episode")  # one entry per slot
    _PER_EPISODE = ("first", "states", "task")
    _COUNTERS = ("_oldest", "_count", "_head", "_used_slots", "used_numbers")

    def state_dict(self) -> dict[str, Any]:
        """All stored episodes; only the used part of the rings."""
        columns = {name.lstrip("_"): getattr(self, name)[: self._used_slots].copy() for name in self._COLUMNS}
        episodes = {name: getattr(self, name)[: self.used_numbers].copy() for name in self._PER_EPISODE}
        counters = {name.lstrip("_"): int(getattr(self, name)) for name in self._COUNTERS}
        return columns | episodes | {"counters": counters}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue with saved episodes of a store of the same capacity; listeners load their own state."""
        for name in self._COLUMNS + self._PER_EPISODE:
            saved = state[name.lstrip("_")]
            getattr(self, name)[: len(saved)] = saved
        for name in self._COUNTERS:
            setattr(self, name, state["counters"][name.lstrip("_")])


@kernel
def _another(tasks, own, units, oldest, count):
    """Another episode of the task of ``own``, drawn by ``units`` (TRIES,) in [0, 1); -1 where no draw is one."""
    for unit in units:
        episode = (oldest + int(unit * count)) % len(tasks)
        if episode != own and tasks[episode] == tasks[own]:
            return episode
    return -1


@kernel
def _rewarded(reward, first, states, units, oldest, count):
    """An episode with a reward in its last step, drawn by ``units`` (TRIES,) in [0, 1); -1 where no draw is one."""
    for unit in units:
        episode = (oldest + int(unit * count)) % len(first)
        if reward[first[episode] + states[episode] - 2] > 0.0:
            return episode
    return -1


@kernel
def _visit(keys, episode, slot, unit):
    """A slot with the state of ``slot``, drawn by ``unit`` in [0, 1) from all but the last of each other episode."""
    found = np.empty(len(keys), np.int64)
    count = 0
    for other in range(len(keys) - 1):
        goes_on = episode[other] == episode[other + 1] and episode[other] != NO_EPISODE
        if keys[other] == keys[slot] and goes_on and episode[other] != episode[slot]:
            found[count] = other
            count += 1
    return found[int(unit * count)] if count else slot


@kernel
def _find(keys, episode, wanted, found):
    """Note in ``found`` which of the ``wanted`` keys, in ascending order, some slot of an episode has."""
    # Most slots have none of them: the last bits of a key tell most of these apart.
    mask = 4095
    maybe = np.zeros(mask + 1, np.bool_)
    for key in wanted:
        maybe[key & mask] = True
    for slot in range(len(keys)):
        if maybe[keys[slot] & mask] and episode[slot] != NO_EPISODE:
            index = np.searchsorted(wanted, keys[slot])
            while index < len(wanted) and wanted[index] == keys[slot]:
                found[index] = True
                index += 1
