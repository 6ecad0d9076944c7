"""Exact ground truth of lava worlds, computed from their transition table.

``D`` is the random number of steps until the target is entered, infinite if the agent dies before or never enters it.
A walk ends at its target, at lava and at the goal.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.layout import GOAL, LAVA, WALL, Rules, empty_table, fill_row
from skipper.envs.lava.scene import scenery_of
from skipper.envs.lava.tasks import Tasks
from skipper.runtime.jit import kernel
from skipper.types import Array

UNREACHABLE = np.iinfo(np.int16).max
# Values closer than this are equal: the error that value iteration may leave, and ties between actions.
TOLERANCE = 1e-12


@kernel
def _search(table, row, source, steps, queue):
    """Breadth-first search from one cell into ``steps`` (S,), initially all ``UNREACHABLE``."""
    steps[source] = 0
    queue[0] = source
    head, tail = 0, 1
    while head < tail:
        cell = queue[head]
        head += 1
        for action in range(table.successor.shape[2]):
            to = table.successor[row, cell, action]
            if steps[to] == UNREACHABLE:
                steps[to] = steps[cell] + 1
                queue[tail] = to
                tail += 1


@kernel
def _search_each(table, rows, sources, distances):
    queue = np.empty(distances.shape[1], np.int32)
    for index in range(len(rows)):
        _search(table, rows[index], sources[index], distances[index], queue)


def distances_from(tasks: Tasks, rows: Array, sources: Array) -> Array:
    """(B, S) int16 fewest steps from cells ``sources`` (B,) of the tasks ``rows`` (B,) to every cell.

    ``UNREACHABLE`` without a path. Slips are ignored: these are the steps when no move slips.
    """
    rows, sources = tasks.check(rows, sources)
    distances = np.full((len(rows), tasks.world.cells), UNREACHABLE, np.int16)
    _search_each(tasks.table, rows, sources, distances)
    return distances


def shortest_distances(tasks: Tasks) -> Array:
    """(N, S, S) int16 fewest steps from the first cell to the second, ``UNREACHABLE`` without a path."""
    count, cells = len(tasks), tasks.world.cells
    rows, sources = np.divmod(np.arange(count * cells), cells)
    return distances_from(tasks, rows, sources).reshape(count, cells, cells)


def reachable(tasks: Tasks, cells: Array | None = None) -> Array:
    """(N, S) bool, the cells that can be entered from ``cells`` (N,), by default the tasks' own starts."""
    sources = tasks.table.start if cells is None else cells
    return distances_from(tasks, np.arange(len(tasks)), sources) != UNREACHABLE


@kernel
def _action_values(table, rows, targets, slip, discount, values):
    _, cells, actions = table.successor.shape
    best = np.empty(cells)
    for index in range(len(rows)):
        row, target = rows[index], targets[index]
        best[:] = 0.0
        sweep, change = 0, 1.0
        while change > TOLERANCE:
            change = 0.0
            for position in range(cells):
                # In-place sweeps in alternating directions propagate values along whole paths.
                cell = position if sweep % 2 == 0 else cells - 1 - position
                if table.terminal[row, cell]:
                    continue
                for action in range(actions):
                    to = table.successor[row, cell, action]
                    values[index, cell, action] = 1.0 if to == target else discount * best[to]
                highest, mean = values[index, cell].max(), values[index, cell].mean()
                value = (1.0 - slip) * highest + slip * mean
                change = max(change, abs(value - best[cell]))
                best[cell] = value
            sweep += 1
        for cell in range(cells):
            if not table.terminal[row, cell]:
                values[index, cell] = (1.0 - slip) * values[index, cell] + slip * values[index, cell].mean()


def action_values(
    tasks: Tasks, rows: Array | None = None, targets: Array | None = None, *, discount: float = 0.99
) -> Array:
    """(B, S, A) optimal E[discount ** (D - 1)] of each action towards ``targets`` (B,) of the tasks ``rows``.

    This is the optimal Q for a reward of 1 on entering the target; by default every task with its own goal, for which
    it is the optimal Q of the task. Terminal cells have value 0; the value in the target is that of returning to it.
    """
    if not 0.0 < discount < 1.0:
        raise ValueError(f"discount must lie between 0 and 1, both excluded, got {discount}")
    rows, targets = _goals_unless(tasks, rows, targets)
    values = np.zeros((len(rows), tasks.world.cells, tasks.table.successor.shape[2]))
    _action_values(tasks.table, rows, targets, tasks.world.slip, discount, values)
    return values


def expected_discounts(
    tasks: Tasks, rows: Array | None = None, targets: Array | None = None, *, discount: float = 0.99
) -> Array:
    """(B, S) optimal E[discount ** D] from every cell to ``targets``: 1 in the target, 0 without a path."""
    rows, targets = _goals_unless(tasks, rows, targets)
    expected = discount * action_values(tasks, rows, targets, discount=discount).max(-1)
    expected[np.arange(len(rows)), targets] = 1.0
    return expected


def _goals_unless(tasks: Tasks, rows: Array | None, targets: Array | None) -> tuple[Array, Array]:
    """The given rows and targets; by default all tasks, and their goals."""
    rows = np.arange(len(tasks)) if rows is None else np.asarray(rows)
    tasks.check(rows, np.zeros_like(rows))
    return tasks.check(rows, tasks.table.goal[rows] if targets is None else targets)


def greedy_policy(values: Array) -> Array:
    """(..., A) equal probabilities of the best actions of ``values`` (..., A)."""
    best = values >= values.max(-1, keepdims=True) - TOLERANCE
    return best / best.sum(-1, keepdims=True)


def optimal_path(tasks: Tasks, row: int) -> Array:
    """(L,) cells of an optimal path of task ``row`` from its start to its goal, both included, without slips."""
    table = tasks.table
    sure = Tasks(replace(tasks.world, slip=0.0), tasks.table)
    values = action_values(sure, rows=np.array([row]))[0]
    path = [int(table.start[row])]
    while path[-1] != table.goal[row]:
        if len(path) > tasks.world.cells:
            raise ValueError(f"task {row} has no path from its start to its goal")
        path.append(int(table.successor[row, path[-1], values[path[-1]].argmax()]))
    return np.array(path)


class PolicyTruth(NamedTuple):
    """Exact results of a policy from every cell, each (N, S), over an episode of the world's length."""

    success: Array  # probability of entering the goal
    death: Array  # probability of entering lava
    timeout: Array  # probability of neither within the episode
    value: Array  # expected discounted return
    length: Array  # expected number of steps


def policy_truth(tasks: Tasks, policy: Array, *, discount: float = 0.99, horizon: int | None = None) -> PolicyTruth:
    """Evaluate a policy exactly, by backward induction over ``horizon`` steps (default: max_steps).

    ``policy`` holds probabilities (N, S, A) or actions (N, S).
    """
    table, world = tasks.table, tasks.world
    count, cells, actions = table.successor.shape
    if policy.shape == (count, cells):
        if policy.min() < 0 or policy.max() >= actions:
            raise ValueError(f"a policy's actions must be 0 to {actions - 1}")
        policy = np.eye(actions)[policy]
    if policy.shape != (count, cells, actions):
        raise ValueError(f"a policy table must be ({count}, {cells}) or ({count}, {cells}, {actions}): {policy.shape}")
    if not np.allclose(policy.sum(-1), 1.0) or policy.min() < 0.0:
        raise ValueError("the policy's probabilities must not be negative and must sum to 1 over the actions")
    policy = (1.0 - world.slip) * policy + world.slip / actions
    rows = np.arange(count)[:, None, None]
    lives = ~table.terminal
    goal = np.arange(cells) == table.goal[:, None]
    dead = table.terminal & ~goal
    success, death, value, length = (np.zeros((count, cells)) for _ in range(4))

    def expect(outcome: Array) -> Array:
        """(N, S) expectation of ``outcome`` (N, S) of the next cell, 0 in terminal cells."""
        return lives * (policy * outcome[rows, table.successor]).sum(-1)

    for _ in range(world.max_steps if horizon is None else horizon):
        success, death = expect(goal + success), expect(dead + death)
        value, length = expect(goal + discount * value), lives * (1.0 + expect(length))
    return PolicyTruth(success, death, lives * (1.0 - success - death), value, length)


class ReachTruth(NamedTuple):
    """Exact results of Q walks towards targets from every cell, each (Q, S)."""

    reached: Array  # probability of reaching the target within the horizon and before the episode ends
    steps: Array  # expected number of steps of the walks that reach it; 0 where none does


def reach_truth(tasks: Tasks, rows: Array, targets: Array, actions: Array, *, horizon: int | None = None) -> ReachTruth:
    """Evaluate walks exactly: ``actions`` (Q, S) of the tasks ``rows`` (Q,) towards cells ``targets`` (Q,).

    By backward induction over ``horizon`` steps (default: max_steps).
    """
    rows, targets = tasks.check(rows, targets)
    table, world = tasks.table, tasks.world
    number = table.successor.shape[2]
    assert actions.shape == (len(rows), world.cells), actions.shape
    policy = (1.0 - world.slip) * np.eye(number)[actions] + world.slip / number  # (Q, S, A)
    to = table.successor[rows]  # (Q, S, A)
    walks = np.arange(len(rows))[:, None, None]
    arrives = to == targets[:, None, None]
    goes_on = ~arrives & ~table.terminal[rows][walks, to]
    lives = ~table.terminal[rows]
    reached, steps = np.zeros((2, *lives.shape))
    for _ in range(world.max_steps if horizon is None else horizon):
        later = goes_on * steps[walks, to]
        reached = lives * (policy * (arrives + goes_on * reached[walks, to])).sum(-1)
        # Add this step for every walk that arrives.
        steps = lives * (policy * later).sum(-1) + reached
    return ReachTruth(reached, np.divide(steps, reached, out=np.zeros_like(steps), where=reached > 0))


class LavaOracle:
    """Ground truth about observations, for agents and metrics that do not know environments.

    A fully observed layout determines its task except for the dynamics, which come from ``world``.
    """

    def __init__(self, world: LavaConfig, *, discount: float = 0.99, capacity: int = 4096) -> None:
        self.world = world
        self.discount = discount
        self._capacity = capacity
        self._values: dict[tuple[bytes, int], Array] = {}  # (layout, target cell) -> (S, A)

    def action_values(self, observations: Array, targets: Array | None = None) -> Array:
        """(B, A) optimal values of reaching ``targets`` (B, W, H, C), or the tasks' goals when None."""
        objects, cells = self._parse(observations)
        goals = (objects == GOAL).argmax(-1)
        aims = goals if targets is None else self._parse(targets)[1]
        layouts = [layout.tobytes() for layout in objects]
        keys = list(zip(layouts, aims.tolist(), strict=True))
        known = self._recall(keys, objects, goals)
        return np.stack([known[key][cell] for key, cell in zip(keys, cells, strict=True)])

    def distances(self, observations: Array, targets: Array) -> Array:
        """(B,) fewest steps from observations to targets, ``inf`` without a path; slips are ignored."""
        objects, cells = self._parse(observations)
        aims = self._parse(targets)[1]
        tasks = self._tasks(objects, (objects == GOAL).argmax(-1))
        rows = np.arange(len(cells))
        steps = distances_from(tasks, rows, cells)[rows, aims]
        return np.where(steps == UNREACHABLE, np.inf, steps)

    def reachable(self, observations: Array) -> Array:
        """(B, S) bool, the cells that can be entered from observations and do not end the episode."""
        objects, cells = self._parse(observations)
        tasks = self._tasks(objects, (objects == GOAL).argmax(-1))
        steps = distances_from(tasks, np.arange(len(cells)), cells)
        return (steps != UNREACHABLE) & ~tasks.table.terminal

    def edges(self, observations: Array, discount: float) -> tuple[Array, Array, Array, Array]:
        """True distance, discount and reward (B, N, N) of all pairs of states (B, N, W, H, C), and terminal (B, N).

        Under the optimal policy towards each target; distances ignore slips. The reward is that of entering the goal,
        which only pairs that end there collect.
        """
        B, N = observations.shape[:2]  # noqa: N806
        objects, cells = self._parse(observations.reshape(B * N, *observations.shape[2:]))
        goals = (objects == GOAL).argmax(-1).reshape(B, N)
        cells = cells.reshape(B, N)
        tasks = self._tasks(objects.reshape(B, N, -1)[:, 0], goals[:, 0])
        rows = np.repeat(np.arange(B), N)
        steps = distances_from(tasks, rows, cells.reshape(-1)).reshape(B, N, -1)
        steps = np.take_along_axis(steps, np.repeat(cells[:, None], N, axis=1), axis=2)  # (B, N, N)
        distance = np.where(steps == UNREACHABLE, np.inf, steps)
        if self.world.slip > 0:
            expected = expected_discounts(tasks, rows, cells.reshape(-1), discount=discount).reshape(B, N, -1)
            gamma = np.take_along_axis(expected, np.repeat(cells[:, None], N, axis=1), axis=2).transpose(0, 2, 1)
        else:
            gamma = discount**distance
        reward = np.where((cells == goals)[:, None, :] & (distance > 0), gamma / discount, 0.0)
        return distance, gamma, reward, np.take_along_axis(tasks.table.terminal, cells, axis=1)

    def _recall(self, keys: list[tuple[bytes, int]], objects: Array, goals: Array) -> dict[tuple[bytes, int], Array]:
        """The values of all keys; those that are not cached are computed in one batch."""
        first = {key: index for index, key in reversed(list(enumerate(keys)))}
        missing = [key for key in first if key not in self._values]
        if missing:
            new = np.array([first[key] for key in missing])
            aims = np.array([aim for _, aim in missing])
            values = action_values(self._tasks(objects[new], goals[new]), targets=aims, discount=self.discount)
            if len(self._values) + len(missing) > self._capacity:
                self._values = {key: self._values[key] for key in first if key in self._values}
            self._values.update(zip(missing, values, strict=True))
        return self._values

    def _parse(self, observations: Array) -> tuple[Array, Array]:
        """(B, S) objects without the agent, and (B,) the agent's cells."""
        size = self.world.width, self.world.height
        if observations.shape[1:3] != size:
            raise ValueError(f"wanted observations of {size[0]}x{size[1]} cells, got {observations.shape[1:3]}")
        objects, agent = scenery_of(observations.reshape(len(observations), -1, observations.shape[-1]))
        foreign = LAVA if self.world.dynamics == "walls" else WALL
        if (agent.sum(-1) != 1).any() or ((objects == GOAL).sum(-1) != 1).any() or (objects == foreign).any():
            raise ValueError(f"wanted one agent, one goal, and the obstacles of dynamics {self.world.dynamics!r}")
        return objects, agent.argmax(-1)

    def _tasks(self, objects: Array, goals: Array) -> Tasks:
        table = empty_table(len(objects), self.world.cells)
        rules = Rules.of(self.world)
        for row, (layout, goal) in enumerate(zip(objects, goals, strict=True)):
            # The start is unknown and not needed here.
            fill_row(table, row, np.isin(layout, (LAVA, WALL)), goal, goal, rules)
        return Tasks(self.world, table)
