"""Sets of tasks: reproducible from a seed, and disjoint since a layout's content decides its split."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.layout import LAVA, WALL, Rules, TaskTable, draw_tasks, empty_table, fill_row, observe
from skipper.envs.rng import stream_states
from skipper.types import Array

# Characters of the textual form of a task, which "ansi" rendering writes and ``tasks_from_text`` reads.
TEXT_EMPTY, TEXT_OBSTACLE, TEXT_GOAL, TEXT_AGENT = ".", "#", "G", "A"


@dataclass(frozen=True)
class Tasks:
    """N fixed tasks of one world."""

    world: LavaConfig
    table: TaskTable

    def __len__(self) -> int:
        return len(self.table.start)

    def subset(self, rows: Sequence[int] | Array) -> "Tasks":
        """The tasks at ``rows``, in that order."""
        return Tasks(self.world, self.table.rows(np.asarray(rows, np.int64)))

    def check(self, rows: Array, cells: Array) -> tuple[Array, Array]:
        """Rows and cells (B,) as arrays, after checking that these tasks have them: kernels do not check."""
        rows, cells = np.asarray(rows), np.asarray(cells)
        if rows.shape != cells.shape or rows.ndim != 1:
            raise ValueError(f"rows and cells must have one shape (B,), got {rows.shape} and {cells.shape}")
        for what, values, bound in (("row", rows, len(self)), ("cell", cells, self.world.cells)):
            if len(values) and not (values.min() >= 0 and values.max() < bound):
                raise ValueError(f"there is no such {what}: wanted 0 to {bound - 1}, got {values}")
        return rows, cells

    def observe(self, rows: Array, cells: Array) -> Array:
        """(B, W, H, 2) observations of agents at ``cells`` (B,) of the tasks at ``rows`` (B,)."""
        rows, cells = self.check(rows, cells)
        return observe(self.table, rows, cells).reshape(-1, self.world.width, self.world.height, 2)

    def lava(self) -> Array:
        """(N, W, H) bool, cells with lava, or with walls in the walled variant."""
        obstacle = np.isin(self.table.scenery[:, :, 0], (LAVA, WALL))
        return obstacle.reshape(-1, self.world.width, self.world.height)


@dataclass(frozen=True)
class TaskStream:
    """A new task for every episode: infinitely many training tasks."""

    world: LavaConfig
    split: str = "stream"

    def __post_init__(self) -> None:
        Rules.of(self.world, self.split)  # refuses an unknown split now and not at the first episode


def training_tasks(world: LavaConfig, count: int, seed: int) -> Tasks:
    """``count`` different training tasks; another seed gives another set."""
    _check(count, seed)
    rules = Rules.of(world, "train")
    table = empty_table(0, world.cells)
    seen: set[int] = set()
    for attempt in range(1, 101):
        keys = stream_states([seed, rules.split, attempt], count)
        drawn = empty_table(count, world.cells)
        fresh = []
        for row, word in enumerate(draw_tasks(drawn, keys, rules).tolist()):
            if word not in seen:
                seen.add(word)
                fresh.append(row)
        fresh = fresh[: count - len(table.start)]
        table = TaskTable(*(np.concatenate(pair) for pair in zip(table, drawn.rows(np.array(fresh, int)), strict=True)))
        if len(table.start) == count:
            return Tasks(world, table)
    raise ValueError(
        f"wanted {count} different tasks, but a {world.width}x{world.height} grid of difficulty "
        f"{world.difficulty} gave only {len(table.start)}; use fewer tasks or a larger grid"
    )


def evaluation_tasks(
    world: LavaConfig,
    difficulty: float,
    count: int,
    seed: int,
    *,
    spread: float = 0.05,
    split: str = "evaluation",
) -> Tasks:
    """``count`` unseen tasks of a difficulty, starting on the side opposite to the goal.

    Each task's density is uniform in difficulty +- spread, as in the authors' experiments.
    """
    _check(count, seed)
    world = replace(world, difficulty=difficulty, spread=spread, start="fixed")
    rules = Rules.of(world, split)
    keys = stream_states([seed, rules.split, round(difficulty * 1_000_000)], count)
    table = empty_table(count, world.cells)
    draw_tasks(table, keys, rules)
    return Tasks(world, table)


def tasks_from_text(*texts: str, world: LavaConfig | None = None) -> Tasks:
    """Tasks from drawings, one line per row: ``A`` start, ``G`` goal, ``#`` lava or wall, ``.`` empty.

    The drawings determine size and difficulty, ``world`` everything else.
    """
    if not texts:
        raise ValueError("at least one drawing is needed")
    grids = [[line.strip() for line in text.strip().splitlines()] for text in texts]
    height, width = len(grids[0]), len(grids[0][0])
    world = replace(world or LavaConfig(), width=width, height=height, difficulty=0.0, spread=0.0)
    table = empty_table(len(grids), world.cells)
    rules = Rules.of(world)
    for row, grid in enumerate(grids):
        if len(grid) != height or any(len(line) != width for line in grid):
            raise ValueError(f"every drawing must be {width}x{height}, got:\n" + "\n".join(grid))
        letters = np.array([list(line) for line in grid]).T.reshape(-1)  # (S,) in cell order
        unknown = set(letters.tolist()) - {TEXT_EMPTY, TEXT_OBSTACLE, TEXT_GOAL, TEXT_AGENT}
        starts, goals = np.flatnonzero(letters == TEXT_AGENT), np.flatnonzero(letters == TEXT_GOAL)
        if unknown or len(starts) != 1 or len(goals) != 1:
            raise ValueError("a drawing needs one A, one G, and otherwise only # and . , got:\n" + "\n".join(grid))
        fill_row(table, row, letters == TEXT_OBSTACLE, starts[0], goals[0], rules)
    return Tasks(world, table)


def resolve_tasks(tasks: Tasks | TaskStream | None, world: dict[str, Any]) -> Tasks | TaskStream:
    """The given tasks, or a stream of new tasks of the world that the keywords describe."""
    if tasks is None:
        return TaskStream(LavaConfig(**world))
    if world:
        raise ValueError(f"tasks have their own world; leave out: {', '.join(sorted(world))}")
    return tasks


def rules_and_table(tasks: Tasks | TaskStream, environments: int) -> tuple[Rules, TaskTable]:
    """What environments play on: the table of fixed tasks, or for a stream one row for each of them."""
    if isinstance(tasks, TaskStream):
        return Rules.of(tasks.world, tasks.split), empty_table(environments, tasks.world.cells)
    return Rules.of(tasks.world), tasks.table


def _check(count: int, seed: int) -> None:
    if count < 1:
        raise ValueError(f"the number of tasks must be at least 1, got {count}")
    if seed < 0:
        raise ValueError(f"a seed must be 0 or more, got {seed}")
