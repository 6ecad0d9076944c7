"""The lava world as an environment family: everything that other packages know of it."""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from skipper.envs.lava.config import PRESETS, Dynamics, LavaConfig
from skipper.envs.lava.layout import ACTIONS, AGENT, DX, DY, GREY
from skipper.envs.lava.oracle import UNREACHABLE, LavaOracle, distances_from, optimal_path, reach_truth
from skipper.envs.lava.render import render_rgb
from skipper.envs.lava.scene import LAVA_PALETTE, LavaScene
from skipper.envs.lava.tasks import Tasks, TaskStream, evaluation_tasks, training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.envs.registry import BasicFamily, Board, TaskSet, with_size
from skipper.envs.symmetry import grid_symmetries
from skipper.types import Array, EnvironmentSpec, Worlds

EXAMPLES = 64  # at most, for initialisation that depends on data
EMPTY_CELL, LAVA_CELL, WALL_CELL, GOAL_CELL = ".", "#", "W", "G"


@dataclass(frozen=True)
class LavaOptions:
    """Which lava worlds; by default those of the run, or the paper's."""

    size: tuple[int, ...] | None = None
    """Cells along x, and along y where that differs: "12", or "12 8". Longer sides also give more steps."""
    dynamics: Dynamics | None = None
    """"lava" kills; "walls" block in the same places."""
    slip: float | None = None
    """Probability that a random action replaces the chosen one."""
    max_steps: int | None = None
    """Steps after which an episode is truncated; by default 64 on 12x12, as in the paper, and more on larger grids."""
    difficulties: tuple[float, ...] | None = None
    """Densities of lava of the evaluation sets; each task's own is drawn within the spread around it."""
    spread: float | None = None
    """Half the width of the band of densities; the authors' experiments use 0.05."""

    def changed(self, base: LavaConfig) -> LavaConfig:
        """``base`` with the given options in place of its own."""
        sized = base if self.size is None else with_size(base, self.size)
        given = {
            "dynamics": self.dynamics,
            "slip": self.slip,
            "max_steps": self.max_steps,
            "difficulties": self.difficulties,
            "difficulty_spread": self.spread,
        }
        changes = {name: value for name, value in given.items() if value is not None}
        return replace(sized, **changes)


class LavaTruth:
    """Ground truth about lava tasks; a state is the agent's cell."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks, self._table = tasks, tasks.table
        self._scene = LavaScene()
        self.states = tasks.world.cells

    def observe(self, rows: Array, states: Array) -> Array:
        """(B, W, H, C) observations of agents at cells ``states`` (B,) of the tasks ``rows`` (B,)."""
        return self._tasks.observe(rows, states)

    def state_of(self, rows: Array, observations: Array) -> Array:
        """(B,) the cells of the agents in observations (B, W, H, C)."""
        return self._scene.agent_cell(observations)

    def starts(self) -> Array:
        """(N,) the tasks' own start cells."""
        return self._table.start

    def goals(self) -> Array:
        """(N,) the tasks' goal cells."""
        return self._table.goal

    def free(self) -> Array:
        """(N, S) bool, cells without lava, wall or goal."""
        free: Array = ~self._table.terminal & ~self._tasks.lava().reshape(len(self._tasks), -1)
        return free

    def reachable(self, row: int) -> Array:
        """(R,) the non-terminal cells that task ``row`` reaches from its start."""
        return self._table.starts[row, : self._table.start_count[row]]

    def successors(self, rows: Array, states: Array, actions: Array) -> Array:
        """(B,) the cells that ``actions`` (B,) lead to without a slip."""
        found: Array = self._table.successor[rows, states, actions]
        return found

    def distances(self, rows: Array, sources: Array) -> Array:
        """(B, S) fewest steps to every cell, ``inf`` where there is no path; slips are ignored."""
        steps = distances_from(self._tasks, rows, sources)
        return np.where(steps == UNREACHABLE, np.inf, steps)

    def walks(self, rows: Array, targets: Array, actions: Array) -> tuple[Array, Array]:
        """Probability of reaching ``targets`` (Q,) with ``actions`` (Q, S) from every cell, and the expected steps."""
        found = reach_truth(self._tasks, rows, targets, actions)
        return found.reached, found.steps

    def optimal_path(self, row: int) -> Array:
        """(L,) cells of an optimal path of task ``row``, without slips."""
        return optimal_path(self._tasks, row)


class LavaFamily(BasicFamily):
    """Lava worlds of any size, density and slip."""

    name = "lava"
    config_type = LavaConfig
    options_type = LavaOptions
    actions = ACTIONS
    cell_colours = {EMPTY_CELL: "#000000", LAVA_CELL: "#ff8000", WALL_CELL: "#646464", GOAL_CELL: "#00c83c"}
    cell_marks = {LAVA_CELL: "".join(f"M0 {level}q.125 -.1 .25 0t.25 0t.25 0t.25 0" for level in (0.3, 0.5, 0.7))}
    set_kind = "difficulty"

    def world(self, preset: str) -> LavaConfig:
        """The paper's world, or a tiny one for debugging."""
        return PRESETS.get(preset, LavaConfig())

    def spec(self, world: LavaConfig, tasks: TaskSet | None = None) -> EnvironmentSpec:
        """Shapes, words, actions, the agent's drawing, symmetries, and ground truth on request.

        Examples are the starts of the first ``tasks``, or of tasks of the stream.
        """
        if tasks is None:
            examples = evaluation_tasks(world, world.difficulty, EXAMPLES, seed=0, spread=world.spread, split="stream")
        else:
            examples = cast(Tasks, tasks)
        shown = np.arange(min(EXAMPLES, len(examples)))
        return EnvironmentSpec(
            shape=(world.width, world.height, 2),
            vocabulary=(AGENT + 1, GREY + 1),
            actions=len(ACTIONS),
            longest=world.max_steps,
            scene=LavaScene(),
            examples=examples.observe(shown, examples.table.start[shown]),
            oracle=LavaOracle(world),
            symmetries=grid_symmetries(world.width, world.height, np.stack([DX, DY], -1)),
            palette=LAVA_PALETTE,
        )

    def training_tasks(self, world: LavaConfig, count: int, seed: int) -> Tasks:
        """``count`` different training tasks."""
        return training_tasks(world, count, seed)

    def vector_env(self, num_envs: int, tasks: TaskSet | None, world: LavaConfig, *, one_each: bool = False) -> Worlds:
        """Environments on fixed tasks, or on a stream of new ones."""
        played = TaskStream(world) if tasks is None else cast(Tasks, tasks)
        return LavaVectorEnv(num_envs, tasks=played, assignment="own" if one_each else "random")

    def evaluation_names(self, world: LavaConfig) -> tuple[str, ...]:
        """One set per difficulty."""
        return tuple(f"{level:g}" for level in world.difficulties)

    def evaluation_tasks(self, world: LavaConfig, name: str, count: int, seed: int, split: str = "evaluation") -> Tasks:
        """Unseen tasks of the difficulty ``name``, from the side opposite to the goal."""
        try:
            level = float(name)
        except ValueError:
            raise ValueError(f"wanted a difficulty, such as 0.45, got {name!r}") from None
        return evaluation_tasks(world, level, count, seed, spread=world.difficulty_spread, split=split)

    def training_evaluation(self, world: LavaConfig, tasks: TaskSet | None, count: int, seed: int) -> Tasks:
        """Training tasks from the configured start, or ``count`` tasks of the stream."""
        if tasks is None:
            drawn = evaluation_tasks(world, world.difficulty, count, seed, spread=world.spread, split="stream")
        else:
            drawn = cast(Tasks, tasks)
        return Tasks(replace(drawn.world, start=world.training_task_start), drawn.table)

    def draw(self, observation: Array) -> Array:
        """A picture in MiniGrid's look."""
        return render_rgb(observation)

    def board(self, tasks: TaskSet, row: int) -> Board:
        """Lava or walls, and the goal."""
        lava = cast(Tasks, tasks)
        obstacle = WALL_CELL if lava.world.dynamics == "walls" else LAVA_CELL
        letters = np.where(lava.lava()[row].ravel(), obstacle, EMPTY_CELL)
        goal = int(lava.table.goal[row])
        letters[goal] = GOAL_CELL
        return Board(lava.world.width, lava.world.height, "".join(letters), goal)

    def truth(self, tasks: TaskSet) -> LavaTruth:
        """Distances, walks and optimal paths from the transition table."""
        return LavaTruth(cast(Tasks, tasks))

    def about(self, world: LavaConfig) -> dict[str, str]:
        """The slip, where there is one."""
        if world.deterministic:
            return {}
        return {"slip": f"{world.slip:g}; true distances and the optimal path assume that no move slips"}


LAVA = LavaFamily()


def environment_spec(world: LavaConfig) -> EnvironmentSpec:
    """What agents must know of a lava world before they act."""
    return LAVA.spec(world)
