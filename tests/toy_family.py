"""A second environment family, as small as the recipe "add an environment" allows: a grid with pits.

The agent starts in the upper left corner and moves right, down, or jumps two cells to the right; moves off the grid
stay. The goal pays 1, a pit ends the episode with nothing. There is no oracle, no symmetry, no example.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skipper.config import WorldConfig
from skipper.envs.registry import BasicFamily, Board, register_family
from skipper.types import EnvironmentSpec

FLOOR, GOAL, PIT = 0, 1, 2  # channel 0 of an observation; channel 1 marks the agent
MOVES = np.array([[1, 0], [0, 1], [2, 0]])  # right, down, jump


@dataclass(frozen=True)
class ToyConfig(WorldConfig):
    side: int = 4
    max_steps: int = 12


@dataclass(frozen=True)
class ToyOptions:
    side: int | None = None
    """Cells along each side."""

    def changed(self, world: ToyConfig) -> ToyConfig:
        return world if self.side is None else replace(world, side=self.side)


@dataclass(frozen=True)
class ToyTasks:
    world: ToyConfig
    terrain: np.ndarray  # (N, S)

    def __len__(self) -> int:
        return len(self.terrain)

    def subset(self, rows: Any) -> "ToyTasks":
        return ToyTasks(self.world, self.terrain[np.asarray(rows)])


def draw_tasks(world: ToyConfig, count: int, pits: int, entropy: list[int]) -> ToyTasks:
    """The goal is in the last column, pits are neither there nor in the first row: there is always a path."""
    rng, size = np.random.default_rng(entropy), world.side
    terrain = np.zeros((count, size, size), np.uint8)
    for grid in terrain:
        cells = rng.permutation((size - 1) ** 2)[:pits]
        grid[cells // (size - 1), 1 + cells % (size - 1)] = PIT
        grid[size - 1, rng.integers(1, size)] = GOAL
    return ToyTasks(world, terrain.reshape(count, -1))


class ToyScene:
    """The agent is where channel 1 says so."""

    def scenery(self, observations):
        return observations[..., 0]

    def agent_cell(self, observations):
        return observations[..., 1].reshape(len(observations), -1).argmax(-1)

    def goal_cell(self, observations):
        return (observations[..., 0] == GOAL).reshape(len(observations), -1).argmax(-1)

    def place_agent(self, observations, cells):
        B, W, H, C = observations.shape  # noqa: N806
        placed = np.repeat(observations[:, None], cells.shape[1], axis=1).reshape(B, -1, W * H, C)
        placed[..., 1] = np.arange(W * H) == cells[..., None]
        return placed.reshape(B, -1, W, H, C)


class ToyEnvs:
    """Same-step autoreset, and a state that can be saved."""

    def __init__(self, num_envs: int, tasks: ToyTasks, one_each: bool) -> None:
        self.num_envs, self.tasks, self.one_each, self.world = num_envs, tasks, one_each, tasks.world
        self.row, self.cell, self.steps = np.arange(num_envs), np.zeros(num_envs, int), np.zeros(num_envs, int)

    def reset(self, *, seed: int):
        self.rng = np.random.default_rng(seed)
        self._begin(np.ones(self.num_envs, bool))
        return self._observe(self.cell), self._info()

    def _begin(self, where) -> None:
        self.cell[where], self.steps[where] = 0, 0
        if not self.one_each:
            self.row[where] = self.rng.integers(len(self.tasks), size=int(where.sum()))

    def _observe(self, cells):
        agent = np.arange(self.world.side**2) == cells[:, None]
        image = np.stack([self.tasks.terrain[self.row], agent], -1).astype(np.uint8)
        return image.reshape(self.num_envs, self.world.side, self.world.side, 2)

    def _info(self):
        return {"goal": self._observe((self.tasks.terrain[self.row] == GOAL).argmax(-1))}

    def step(self, actions):
        size = self.world.side
        position = np.stack(np.divmod(self.cell, size), -1) + MOVES[actions]
        inside = (position < size).all(-1)
        self.cell = np.where(inside, position @ [size, 1], self.cell)
        self.steps += 1
        ground = self.tasks.terrain[self.row, self.cell]
        terminated = ground != FLOOR
        truncated = ~terminated & (self.steps >= self.world.max_steps)
        final, ended = self._observe(self.cell), terminated | truncated
        self._begin(ended)
        return (
            self._observe(self.cell),
            (ground == GOAL).astype(float),
            terminated,
            truncated,
            self._info() | {"final_obs": final},
        )

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name).copy() for name in ("row", "cell", "steps")} | {
            "rng": self.rng.bit_generator.state
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in ("row", "cell", "steps"):
            setattr(self, name, state[name].copy())
        self.rng.bit_generator.state = state["rng"]


class ToyFamily(BasicFamily):
    name = "toy"
    config_type = ToyConfig
    options_type = ToyOptions
    actions = ("right", "down", "jump")
    cell_colours = {".": "#202020", "G": "#00c83c", "o": "#ff8000"}
    set_kind = "level"
    pits = {"few": 1, "many": 3}

    def spec(self, world: ToyConfig, tasks: ToyTasks | None = None) -> EnvironmentSpec:
        return EnvironmentSpec((world.side, world.side, 2), (3, 2), 3, world.max_steps, scene=ToyScene())

    def training_tasks(self, world: ToyConfig, count: int, seed: int) -> ToyTasks:
        return draw_tasks(world, count, 1, [seed, 0])

    def vector_env(self, num_envs: int, tasks: ToyTasks, world: ToyConfig, *, one_each: bool = False) -> ToyEnvs:
        return ToyEnvs(num_envs, tasks, one_each)

    def evaluation_names(self, world: ToyConfig) -> tuple[str, ...]:
        return tuple(self.pits)

    def evaluation_tasks(
        self, world: ToyConfig, name: str, count: int, seed: int, split: str = "evaluation"
    ) -> ToyTasks:
        return draw_tasks(world, count, self.pits[name], [seed, 2, *split.encode()])

    def draw(self, observation):
        colours = np.array([[32, 32, 32], [0, 200, 60], [255, 128, 0], [255, 0, 0]], np.uint8)
        ground = np.where(observation[..., 1] == 1, 3, observation[..., 0]).T
        return np.kron(colours[ground], np.ones((8, 8, 1), np.uint8))

    def board(self, tasks: ToyTasks, row: int) -> Board:
        terrain = tasks.terrain[row]
        return Board(tasks.world.side, tasks.world.side, "".join(".Go"[thing] for thing in terrain), None)


TOY = ToyFamily()
register_family("toy", lambda: TOY)
