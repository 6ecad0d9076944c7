"""The lava world in plain Python, without tables and kernels: slow, short, and hard to get wrong.

Benchmarks compare with it, and tests check the fast world against it.
"""

import random
from collections import deque

import numpy as np

from skipper.envs.lava.tasks import Tasks

MOVES = ((1, 0), (0, 1), (-1, 0), (0, -1))
Cell = tuple[int, int]
INFINITE = float("inf")


class PlainWorld:
    """One task on a grid of (x, y) cells."""

    def __init__(self, width: int, height: int, obstacles: set[Cell], goal: Cell, walls: bool = False) -> None:
        self.width, self.height = width, height
        self.obstacles, self.goal, self.walls = obstacles, goal, walls
        self.cells = [(x, y) for x in range(width) for y in range(height)]

    def terminal(self, cell: Cell) -> bool:
        """Whether the episode ends on entering the cell."""
        return cell == self.goal or (cell in self.obstacles and not self.walls)

    def move(self, cell: Cell, action: int) -> Cell:
        """The cell that an action leads to."""
        x, y = cell[0] + MOVES[action][0], cell[1] + MOVES[action][1]
        blocked = self.walls and ((x, y) in self.obstacles or cell in self.obstacles)
        if self.terminal(cell) or blocked or not (0 <= x < self.width and 0 <= y < self.height):
            return cell
        return x, y

    def observe(self, agent: Cell) -> list[list[tuple[int, int]]]:
        """(object, colour) of every cell [x][y], in MiniGrid's indices."""
        solid = (2, 5) if self.walls else (9, 0)
        grid = [[solid if (x, y) in self.obstacles else (1, 0) for y in range(self.height)] for x in range(self.width)]
        grid[self.goal[0]][self.goal[1]] = (8, 1)
        under = grid[agent[0]][agent[1]]
        grid[agent[0]][agent[1]] = (10, {(1, 0): 0, (8, 1): 1, (9, 0): 4, (2, 5): 5}[under])
        return grid

    def distances(self, source: Cell) -> dict[Cell, float]:
        """Fewest steps to every cell."""
        steps = dict.fromkeys(self.cells, INFINITE)
        steps[source] = 0
        queue = deque([source])
        while queue:
            cell = queue.popleft()
            for action in range(4):
                to = self.move(cell, action)
                if steps[to] == INFINITE:
                    steps[to] = steps[cell] + 1
                    queue.append(to)
        return steps

    def action_values(self, target: Cell, discount: float, slip: float = 0.0) -> dict[Cell, list[float]]:
        """Optimal Q of a reward of 1 on entering the target, by value iteration."""
        values = {cell: [0.0] * 4 for cell in self.cells}
        change = 1.0
        while change > 1e-12:
            change = 0.0
            best = {cell: max(values[cell]) for cell in self.cells}
            for cell in self.cells:
                if self.terminal(cell):
                    continue
                tos = [self.move(cell, action) for action in range(4)]
                aimed = [1.0 if to == target else discount * best[to] for to in tos]
                for action in range(4):
                    value = (1 - slip) * aimed[action] + slip * sum(aimed) / 4
                    change = max(change, abs(value - values[cell][action]))
                    values[cell][action] = value
        return values


def plain_world(tasks: Tasks, row: int) -> PlainWorld:
    """The plain twin of one of the fast tasks."""
    world = tasks.world
    obstacles = {(int(x), int(y)) for x, y in np.argwhere(tasks.lava()[row])}
    goal = divmod(int(tasks.table.goal[row]), world.height)
    return PlainWorld(world.width, world.height, obstacles, goal, world.dynamics == "walls")


def draw_plain(width: int, height: int, difficulty: float, rng: random.Random) -> tuple[PlainWorld, Cell]:
    """A random world and its start, drawn by the same rules as the fast layouts, from other random numbers."""
    lava_cells = int(difficulty * (width - 2) * height)
    while True:
        side = rng.randrange(2) * (width - 1)
        start, goal = (side, rng.randrange(height)), (width - 1 - side, rng.randrange(height))
        obstacles = {(x, y) for x in range(1, width - 1) for y in range(height)}
        x, y = start
        while (x, y) != goal:
            towards_x = ((goal[0] > x) - (goal[0] < x), 0)
            towards_y = (0, (goal[1] > y) - (goal[1] < y))
            if rng.random() < 0.5:
                dx, dy = MOVES[rng.randrange(4)]
            elif y == goal[1] or (x != goal[0] and rng.random() < 0.5):
                dx, dy = towards_x
            else:
                dx, dy = towards_y
            for _ in range(rng.randint(1, 3)):
                x, y = min(max(x + dx, 0), width - 1), min(max(y + dy, 0), height - 1)
                obstacles.discard((x, y))
                if (x, y) == goal:
                    break
        if len(obstacles) >= lava_cells:
            kept = rng.sample(sorted(obstacles), lava_cells)
            return PlainWorld(width, height, set(kept), goal), start
