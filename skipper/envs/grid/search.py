"""All states of a task, found by breadth-first search in the real environment, as a transition table."""

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from skipper.envs.grid.playable import HELP, Playable
from skipper.types import Array

MOST_STATES = 4_000  # of a task whose table is read; a few thousand states take about a second
COMPARED, EVERY = 64, 17  # states that were met again and are compared with when they were first met; one of so many


class TooManyStatesError(ValueError):
    """The search was given up."""


class HiddenStateError(ValueError):
    """Equal observations behave differently."""

    def __init__(self, difference: str) -> None:
        super().__init__(
            f"an observation does not identify the state: two states look alike, but {difference}; "
            f"show what differs in a channel of its own, {HELP}"
        )


class Table(NamedTuple):
    """The n states of a task and A actions; the first state is the one that the search began with."""

    observation: Array  # (n, W, H, C) uint8
    successor: Array  # (n, A) int32; terminal states lead to themselves
    reward: Array  # (n, A) float32 the environment's own
    terminal: Array  # (n,) bool


class StateGraph:
    """The states that were found so far, and what each action leads to in them."""

    def __init__(self, env: Playable, actions: Sequence[int], limit: int = MOST_STATES) -> None:
        self._env, self._actions, self._limit = env, tuple(actions), limit
        self._index: dict[bytes, int] = {}
        self._observation: list[Array] = []
        self._terminal: list[bool] = []
        self._successor: list[list[int]] = []
        self._reward: list[list[float]] = []
        self._met_again: list[tuple[Any, int]] = []
        self._meetings = 0
        self._table: Table | None = None  # until a state is added

    def find(self, observation: Array) -> int:
        """The number of a state; -1 where it was not found."""
        return self._index.get(observation.tobytes(), -1)

    def add_isolated(self, observation: Array, *, terminal: bool) -> int:
        """Add a state that cannot be played: every action stays in it."""
        return self._add(observation, terminal=terminal)

    def explore(self, observation: Array) -> int:
        """Add the environment's current state, which shows ``observation``, and all that can be reached from it."""
        first = self._add(observation, terminal=False)
        queue = deque([(first, self._env.save())])
        while queue:
            index, saved = queue.popleft()
            for action in range(len(self._actions)):
                to, new = self._try(saved, index, action)
                if new and not self._terminal[to]:
                    queue.append((to, self._env.save()))
        self._compare()
        return first

    def _add(self, observation: Array, *, terminal: bool) -> int:
        index, self._table = len(self._observation), None
        if index >= self._limit:
            raise TooManyStatesError(f"a task has more than {self._limit:,} states, too many to list")
        self._index[observation.tobytes()] = index
        self._observation.append(observation)
        self._terminal.append(terminal)
        self._successor.append([index] * len(self._actions))
        self._reward.append([0.0] * len(self._actions))
        return index

    def _try(self, saved: Any, index: int, action: int) -> tuple[int, bool]:
        """Take an action in a saved state; returns the state that it leads to, and whether that is new."""
        self._env.restore(saved)
        observation, reward, terminated, _ = self._env.step(self._actions[action])
        to = self.find(observation)
        new = to < 0
        if new:
            to = self._add(observation.copy(), terminal=terminated)
        elif self._terminal[to] != terminated:
            raise HiddenStateError("only one of them ends the episode")
        elif not terminated and to != index:
            self._meetings += 1
            if self._meetings % EVERY == 1 and len(self._met_again) < COMPARED:
                self._met_again.append((self._env.save(), to))
        self._successor[index][action], self._reward[index][action] = to, reward
        return to, new

    def _compare(self) -> None:
        """Take all actions in some states that were met again: they must lead where they led before."""
        for saved, index in self._met_again:
            for action, name in enumerate(self._actions):
                self._env.restore(saved)
                observation, reward, _, _ = self._env.step(name)
                if self.find(observation) != self._successor[index][action]:
                    raise HiddenStateError(f"action {self._env.actions[name]!r} leads from them to different states")
                if reward != self._reward[index][action]:
                    raise HiddenStateError(f"action {self._env.actions[name]!r} is rewarded differently")
        self._met_again = []

    def __len__(self) -> int:
        return len(self._observation)

    def table(self) -> Table:
        """Everything as arrays."""
        if self._table is None:
            self._table = Table(
                np.stack(self._observation),
                np.array(self._successor, np.int32),
                np.array(self._reward, np.float32),
                np.array(self._terminal),
            )
        return self._table


def read_table(env: Playable, seed: int, actions: Sequence[int], limit: int = MOST_STATES) -> Table:
    """The transition table of the task that ``seed`` draws, from its start."""
    graph = StateGraph(env, actions, limit)
    graph.explore(env.reset(seed))
    return graph.table()
