"""Exact ground truth about tasks whose states can be listed, by breadth-first search in the real environment."""

from collections.abc import Callable
from math import prod
from typing import Any, Protocol

import numpy as np

from skipper.envs.grid.playable import Playable
from skipper.envs.grid.search import StateGraph, Table
from skipper.runtime.jit import kernel
from skipper.types import Array, placement_of

MOST_TRUE_STATES = 50_000  # of a task that ground truth is computed for
MOST_PLACEMENTS = 2**20
GRAPHS = 64  # scenes whose states are kept
FAR = 2**30


class Settable(Playable, Protocol):
    """An environment that can be put into any state that an observation shows."""

    def load(self, observation: Array) -> bool:
        """Take up the state that ``observation`` shows; False where it cannot be played."""

    def ends(self, observation: Array) -> bool:
        """Whether episodes end in the state that ``observation`` shows."""


@kernel
def _search(successor, source, steps):
    """Fill ``steps`` (n,), initially all ``FAR``, with the fewest steps from ``source``."""
    queue = np.empty(len(successor), np.int64)
    queue[0], steps[source] = source, 0
    head, tail = 0, 1
    while head < tail:
        state = queue[head]
        head += 1
        for action in range(successor.shape[1]):
            to = successor[state, action]
            if steps[to] == FAR:
                steps[to] = steps[state] + 1
                queue[tail] = to
                tail += 1


def distances_from(successor: Array, source: int) -> Array:
    """(n,) fewest steps from a state to every other, ``inf`` without a path."""
    steps = np.full(len(successor), FAR, np.int64)
    _search(successor, source, steps)
    return np.where(steps == FAR, np.inf, steps)


class GridTruth:
    """Ground truth about N tasks. States are numbered by table; the last one stands for all that are not in it."""

    def __init__(self, tables: list[Table], goals: list[int], horizon: int) -> None:
        """``goals`` are the goal state of each table, -1 where it has none."""
        self._tables, self._goals, self._horizon = tables, np.array(goals), horizon
        self.states = max(len(table.terminal) for table in tables) + 1
        self._index = [{seen.tobytes(): number for number, seen in enumerate(table.observation)} for table in tables]

    def observe(self, rows: Array, states: Array) -> Array:
        """(B, W, H, C) observations; a state that is not in the table shows the start."""
        return np.stack(
            [
                self._tables[row].observation[state if state < len(self._index[row]) else 0]
                for row, state in zip(rows, states, strict=True)
            ]
        )

    def state_of(self, rows: Array, observations: Array) -> Array:
        """(B,) the states that observations (B, W, H, C) show."""
        unknown = self.states - 1
        seen = zip(rows, observations, strict=True)
        return np.array([self._index[row].get(observation.tobytes(), unknown) for row, observation in seen], np.int64)

    def starts(self) -> Array:
        """(N,) the first state of every table."""
        return np.zeros(len(self._tables), np.int64)

    def goals(self) -> Array:
        """(N,) goal states, or the state that is in no table where the goal cannot be reached."""
        return np.where(self._goals < 0, self.states - 1, self._goals)

    def free(self) -> Array:
        """(N, n) bool, the states that do not end the episode."""
        found = np.zeros((len(self._tables), self.states), bool)
        for row, table in enumerate(self._tables):
            found[row, : len(table.terminal)] = ~table.terminal
        return found

    def reachable(self, row: int) -> Array:
        """(R,) the states of a task that do not end the episode."""
        return np.flatnonzero(~self._tables[row].terminal)

    def successors(self, rows: Array, states: Array, actions: Array) -> Array:
        """(B,) the states that ``actions`` (B,) lead to."""
        found = self._successor(rows)
        return found[np.arange(len(rows)), states, actions]

    def distances(self, rows: Array, sources: Array) -> Array:
        """(B, n) fewest steps, ``inf`` without a path."""
        return np.stack(
            [distances_from(self._padded(row), int(source)) for row, source in zip(rows, sources, strict=True)]
        )

    def walks(self, rows: Array, targets: Array, actions: Array) -> tuple[Array, Array]:
        """Whether ``actions`` (Q, n) reach ``targets`` (Q,) from every state, and in how many steps, (Q, n) each."""
        to = np.take_along_axis(self._successor(rows), actions[..., None], -1)[..., 0]  # (Q, n)
        terminal = np.stack([self._ends(row) for row in rows])
        at, reached, steps = np.broadcast_to(np.arange(self.states), to.shape), *np.zeros((2, *to.shape))
        going = ~terminal
        for step in range(1, self._horizon + 1):
            at = np.where(going, np.take_along_axis(to, at, -1), at)
            arrived = going & (at == targets[:, None])
            reached[arrived], steps[arrived] = 1.0, step
            going &= ~arrived & ~np.take_along_axis(terminal, at, -1)
        return reached, steps

    def optimal_path(self, row: int) -> Array:
        """(L,) states of a shortest path from the start to the goal; the start alone where there is none."""
        successor, path, goal = self._padded(row), [0], int(self.goals()[row])
        if not np.isfinite(distances_from(successor, 0)[goal]):
            return np.array(path)
        backwards = _steps_to(successor, np.arange(self.states) == goal)
        while path[-1] != goal:
            following = successor[path[-1]]
            path.append(int(following[backwards[following].argmin()]))
        return np.array(path)

    def _padded(self, row: int) -> Array:
        """(n, A) successors; states that are not in the table lead to themselves."""
        table = self._tables[row]
        everywhere = np.repeat(np.arange(self.states)[:, None], table.successor.shape[1], axis=1)
        everywhere[: len(table.terminal)] = table.successor
        return everywhere

    def _successor(self, rows: Array) -> Array:
        return np.stack([self._padded(row) for row in rows])

    def _ends(self, row: int) -> Array:
        ends = np.zeros(self.states, bool)
        ends[: len(self._tables[row].terminal)] = self._tables[row].terminal
        return ends


class GridOracle:
    """Ground truth about observations: the environment is put into the states that they show, and searched."""

    def __init__(
        self, make: Callable[[], Settable], actions: tuple[int, ...], scene: Any, goal_of: Callable[[Array], Array]
    ) -> None:
        """``goal_of`` says which observations (n, W, H, C) show a reached goal, (n,) bool."""
        self._env, self._actions, self._scene, self._goal_of = make(), actions, scene, goal_of
        self._graphs: dict[bytes, StateGraph] = {}

    def action_values(self, observations: Array, targets: Array | None = None, discount: float = 0.99) -> Array:
        """(B, A) optimal values of reaching ``targets`` (B, W, H, C), or the tasks' goals when None."""
        values = np.zeros((len(observations), len(self._actions)))
        for row, observation in enumerate(observations):
            graph, (here,) = self._numbers(observation, observation[None])
            if targets is None:
                table = graph.table()
                aims = self._goal_of(table.observation) & table.terminal
            else:
                aim = self._numbers(observation, targets[row][None])[1][0]
                table = graph.table()
                aims = np.arange(len(table.terminal)) == aim
            steps = _steps_to(table.successor, aims)[table.successor[here]]  # (A,)
            values[row] = discount**steps
        return values

    def distances(self, observations: Array, targets: Array) -> Array:
        """(B,) fewest steps from observations to targets, ``inf`` without a path."""
        found = np.empty(len(observations))
        for row, pair in enumerate(zip(observations, targets, strict=True)):
            graph, (here, aim) = self._numbers(pair[0], np.stack(pair))
            found[row] = distances_from(graph.table().successor, here)[aim]
        return found

    def reachable(self, observations: Array) -> Array:
        """(B, P) bool, the placements that can be reached from observations and do not end the episode."""
        placements = prod(self._scene.parts)
        if placements > MOST_PLACEMENTS:
            raise ValueError(
                f"a state is one of {placements:,} placements, too many to list; at most {MOST_PLACEMENTS:,}"
            )
        found = np.zeros((len(observations), placements), bool)
        for row, observation in enumerate(observations):
            graph, (here,) = self._numbers(observation, observation[None])
            table = graph.table()
            there = np.isfinite(distances_from(table.successor, here)) & ~table.terminal
            found[row, placement_of(self._scene, table.observation[there])] = True
        return found

    def edges(self, observations: Array, discount: float) -> tuple[Array, Array, Array, Array]:
        """True distance, discount and reward (B, N, N) of all pairs of states (B, N, W, H, C), and terminal (B, N)."""
        B, N = observations.shape[:2]  # noqa: N806
        distance, terminal, goal = np.empty((B, N, N)), np.empty((B, N), bool), np.empty((B, N), bool)
        for row, states in enumerate(observations):
            graph, numbers = self._numbers(states[0], states)
            table = graph.table()
            terminal[row], goal[row] = table.terminal[numbers], self._goal_of(states)
            for source, number in enumerate(numbers):
                distance[row, source] = distances_from(table.successor, number)[numbers]
        gamma = discount**distance
        reward = np.where(goal[:, None, :] & (distance > 0), gamma / discount, 0.0)
        return distance, gamma, reward, terminal

    def _numbers(self, scene: Array, states: Array) -> tuple[StateGraph, list[int]]:
        """The graph of a scene (W, H, C), and the numbers of states (N, W, H, C); new ones are added."""
        key = self._scene.scenery(scene[None]).tobytes()
        if key not in self._graphs:
            if len(self._graphs) >= GRAPHS:
                self._graphs = {}
            self._graphs[key] = StateGraph(self._env, self._actions, MOST_TRUE_STATES)
        graph = self._graphs[key]
        return graph, [self._number(graph, state) for state in states]

    def _number(self, graph: StateGraph, state: Array) -> int:
        found = graph.find(state)
        if found >= 0:
            return found
        if self._env.load(state):
            return graph.explore(state)
        return graph.add_isolated(state, terminal=self._env.ends(state))


def _steps_to(successor: Array, aims: Array) -> Array:
    """(n,) fewest steps from every state to any of the ``aims`` (n,) bool."""
    steps = np.where(aims, 0.0, np.inf)
    while True:
        shorter = np.minimum(steps, steps[successor].min(-1) + 1)
        if (shorter == steps).all():
            return steps
        steps = shorter
