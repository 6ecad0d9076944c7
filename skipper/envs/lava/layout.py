"""The lava world: random layouts and their transition table, which alone defines the dynamics.

The agent crosses a grid from one side column to the goal on the other (paper, Sec. 5). The inner columns hold a fixed
number of lava cells that leave at least one path. A move off the grid leaves the agent where it is; entering the goal
pays 1 and ends the episode, entering lava ends it with nothing. In the walled variant the same cells block instead.
With probability ``slip`` a random action replaces the chosen one.

A ``TaskTable`` holds everything about a batch of tasks: the single environment, the vector environment and the oracle
all read it. A task is a pure function of its 64-bit key.
"""

from typing import NamedTuple

import numpy as np

from skipper.envs.lava.config import LavaConfig
from skipper.envs.rng import mix64, random_below, random_unit, random_word
from skipper.runtime.jit import kernel
from skipper.types import Array

# MiniGrid's indices of objects and colours.
EMPTY, WALL, GOAL, LAVA, AGENT = 1, 2, 8, 9, 10
RED, GREEN, YELLOW, GREY = 0, 1, 4, 5

ACTIONS = ("east", "south", "west", "north")
DX = np.array([1, 0, -1, 0])
DY = np.array([0, 1, 0, -1])

# The colour of each object as scenery, and of an agent on top of it.
SCENERY_COLOUR = np.zeros(AGENT + 1, np.uint8)
SCENERY_COLOUR[[EMPTY, WALL, GOAL, LAVA]] = RED, GREY, GREEN, RED
AGENT_COLOUR = np.zeros(AGENT + 1, np.uint8)
AGENT_COLOUR[[EMPTY, WALL, GOAL, LAVA]] = RED, GREY, GREEN, YELLOW

# The carved walk changes direction every 1 to 3 steps: with this probability at random, otherwise towards the goal.
# Together they give a mean shortest path of 16.4 steps at difficulty 0.4 on 12x12.
WALK_NOISE = 0.5
LONGEST_HEADING = 3
# A layout whose walk left too little lava is drawn again; from time to time with less noise, so that every possible
# difficulty finds a layout soon.
DRAWS_BEFORE_LESS_NOISE = 64
# A task's content decides which of these it belongs to; two bits encode the split.
SPLITS = ("train", "stream", "evaluation", "tuning")
MOST_DRAWS = 100_000  # draws of one task; a few dozen are usually enough


class TaskTable(NamedTuple):
    """N tasks of one world as arrays, for numba kernels."""

    start: Array  # (N,) int32 the task's own start cell
    goal: Array  # (N,) int32
    scenery: Array  # (N, S, 2) uint8 objects and colours without the agent
    successor: Array  # (N, S, A) int32 the cell that a move leads to; terminal cells lead to themselves
    terminal: Array  # (N, S) bool
    starts: Array  # (N, S) int32 the non-terminal cells reachable from start, padded
    start_count: Array  # (N,) int32 how many entries of starts are valid

    def rows(self, indices: Array) -> "TaskTable":
        """A copy of the tasks at ``indices``."""
        return TaskTable(*(column[indices] for column in self))


class Rules(NamedTuple):
    """The values of a ``LavaConfig``, and of a split, that numba kernels need."""

    width: int
    height: int
    least_difficulty: float
    most_difficulty: float
    walls: bool
    slip: float
    max_steps: int
    uniform_start: bool
    split: int  # index into SPLITS

    @classmethod
    def of(cls, world: LavaConfig, split: str = "train") -> "Rules":
        """Convert the configuration; ``split`` names the class of layouts to draw from."""
        if split not in SPLITS:
            raise ValueError(f"unknown split {split!r}; available: {', '.join(SPLITS)}")
        return cls(
            width=world.width,
            height=world.height,
            least_difficulty=world.difficulty - world.spread,
            most_difficulty=world.difficulty + world.spread,
            walls=world.dynamics == "walls",
            slip=world.slip,
            max_steps=world.max_steps,
            uniform_start=world.start == "uniform",
            split=SPLITS.index(split),
        )


def empty_table(count: int, cells: int) -> TaskTable:
    """An empty table for ``count`` tasks."""
    return TaskTable(
        start=np.zeros(count, np.int32),
        goal=np.zeros(count, np.int32),
        scenery=np.zeros((count, cells, 2), np.uint8),
        successor=np.zeros((count, cells, len(ACTIONS)), np.int32),
        terminal=np.zeros((count, cells), np.bool_),
        starts=np.zeros((count, cells), np.int32),
        start_count=np.zeros(count, np.int32),
    )


@kernel
def _carve_walk(states, start, goal, noise, rules, lava):
    """Clear the cells of a noisy walk from start to goal."""
    width, height = rules.width, rules.height
    x, y = start // height, start % height
    goal_x, goal_y = goal // height, goal % height
    while x != goal_x or y != goal_y:
        if random_unit(states, 0) < noise:
            action = random_below(states, 0, 4)
            step_x, step_y = DX[action], DY[action]
        elif y == goal_y or (x != goal_x and random_unit(states, 0) < 0.5):
            step_x, step_y = np.int64(np.sign(goal_x - x)), np.int64(0)
        else:
            step_x, step_y = np.int64(0), np.int64(np.sign(goal_y - y))
        # Several steps in one direction: bends, not jitter, lengthen the shortest path.
        for _ in range(1 + random_below(states, 0, LONGEST_HEADING)):
            x = min(max(x + step_x, 0), width - 1)
            y = min(max(y + step_y, 0), height - 1)
            lava[x * height + y] = False
            if x == goal_x and y == goal_y:
                break


@kernel
def _draw_layout(states, noise, rules, lava):
    """Draw one layout into ``lava`` (S,); return start, goal and whether its lava count is right."""
    width, height = rules.width, rules.height
    field = (width - 2) * height
    difficulty = rules.least_difficulty
    if rules.most_difficulty > rules.least_difficulty:
        difficulty += random_unit(states, 0) * (rules.most_difficulty - rules.least_difficulty)
    count = np.int64(difficulty * field)

    far_side = (width - 1) * height
    start_side = far_side * random_below(states, 0, 2)
    start = start_side + random_below(states, 0, height)
    goal = far_side - start_side + random_below(states, 0, height)

    lava[:] = False
    lava[height:far_side] = True
    _carve_walk(states, start, goal, noise, rules, lava)
    remaining = np.flatnonzero(lava)
    # Remove surplus lava: a partial Fisher-Yates shuffle chooses cells uniformly.
    for last in range(len(remaining) - 1, count - 1, -1):
        chosen = random_below(states, 0, last + 1)
        lava[remaining[chosen]] = False
        remaining[chosen] = remaining[last]
    return start, goal, len(remaining) >= count


@kernel
def _content_hash(lava, goal, height):
    """64 bits that depend on lava and goal alone: the start does not change a task.

    The last two bits are the task's split. For a given lava field they cycle through all splits as the goal moves along
    its column, so that no split is empty even on small grids.
    """
    word = np.uint64(len(lava))
    for cell in range(len(lava)):
        if lava[cell]:
            word ^= mix64(np.uint64(cell + 1))  # Zobrist hashing
    side, row = goal // height, goal % height
    offset = np.uint64(row + (height if side > 0 else 0))
    split = (mix64(word) + offset) & np.uint64(3)
    return (mix64(word + offset) & ~np.uint64(3)) | split


@kernel
def fill_row(table, row, lava, start, goal, rules):
    """Write the task with this layout into ``row`` of the table: scenery, transitions and starts."""
    width, height = rules.width, rules.height
    obstacle = WALL if rules.walls else LAVA
    table.start[row] = start
    table.goal[row] = goal
    for cell in range(width * height):
        thing = GOAL if cell == goal else (obstacle if lava[cell] else EMPTY)
        table.scenery[row, cell, 0] = thing
        table.scenery[row, cell, 1] = SCENERY_COLOUR[thing]
        table.terminal[row, cell] = thing in (GOAL, LAVA)
    for cell in range(width * height):
        x, y = cell // height, cell % height
        for action in range(4):
            to_x, to_y = x + DX[action], y + DY[action]
            to = to_x * height + to_y
            on_grid = 0 <= to_x < width and 0 <= to_y < height
            moves = on_grid and not table.terminal[row, cell] and table.scenery[row, to, 0] != WALL
            table.successor[row, cell, action] = to if moves and table.scenery[row, cell, 0] != WALL else cell
    _fill_starts(table, row)


@kernel
def _fill_starts(table, row):
    """Breadth-first search from the start; the queue is the list of possible starts."""
    cells = table.terminal.shape[1]
    seen = np.zeros(cells, np.bool_)
    queue = table.starts[row]
    queue[0] = table.start[row]
    seen[queue[0]] = True
    head, tail = 0, 1
    while head < tail:
        for action in range(4):
            to = table.successor[row, queue[head], action]
            if not seen[to] and not table.terminal[row, to]:
                seen[to] = True
                queue[tail] = to
                tail += 1
        head += 1
    table.start_count[row] = tail


@kernel
def draw_task(table, row, key, rules):
    """Draw the task that ``key`` decides into ``row``; return its content hash."""
    states = np.empty(1, np.uint64)
    states[0] = key
    lava = np.empty(rules.width * rules.height, np.bool_)
    noise = WALK_NOISE
    for draw in range(1, MOST_DRAWS + 1):
        start, goal, enough = _draw_layout(states, noise, rules, lava)
        if enough:
            word = _content_hash(lava, goal, rules.height)
            # Content decides the split, so no two splits share a layout, whatever their seeds.
            if np.int64(word & np.uint64(3)) == rules.split:
                fill_row(table, row, lava, start, goal, rules)
                return word
        elif draw % DRAWS_BEFORE_LESS_NOISE == 0:
            noise *= 0.5
    raise RuntimeError("no layout was found")


@kernel
def draw_tasks(table, keys, rules):
    """Fill the table with the tasks of ``keys`` (N,); return their content hashes (N,)."""
    hashes = np.empty(len(keys), np.uint64)
    for row in range(len(keys)):
        hashes[row] = draw_task(table, row, keys[row], rules)
    return hashes


@kernel
def slipped(action, slip, states, index):
    """The action that is executed; without slip no random number is drawn."""
    if slip > 0.0 and random_unit(states, index) < slip:
        return random_below(states, index, 4)
    return action


@kernel
def begin_episode(table, row, rules, stream, states, index):
    """Choose the row and the start cell of a new episode.

    ``row`` >= 0 keeps that row, redrawing its task first when the tasks are a ``stream``; -1 chooses any row.
    """
    if stream:
        draw_task(table, row, random_word(states, index), rules)
    elif row < 0:
        row = random_below(states, index, len(table.start))
    cell = np.int64(table.start[row])
    if rules.uniform_start:
        cell = np.int64(table.starts[row, random_below(states, index, table.start_count[row])])
    return row, cell


@kernel
def draw_agent(image, scenery, cell):
    """Write the observation of an agent at ``cell`` into ``image`` (S, 2)."""
    image[:] = scenery
    move_agent(image, scenery, cell, cell)


@kernel
def move_agent(image, scenery, cell, to):
    """Redraw the two cells of ``image`` (S, 2) that a move changes."""
    image[cell] = scenery[cell]
    image[to, 0] = AGENT
    image[to, 1] = AGENT_COLOUR[scenery[to, 0]]


@kernel
def observe(table, rows, cells):
    """(B, S, 2) observations of agents at ``cells`` (B,), which may be any, of the tasks at ``rows`` (B,)."""
    images = np.empty((len(rows), table.scenery.shape[1], 2), np.uint8)
    for index in range(len(rows)):
        draw_agent(images[index], table.scenery[rows[index]], cells[index])
    return images
