"""A fully observed grid as an environment family: everything that other packages know of it."""

from functools import cached_property, partial
from typing import Any, cast

import gymnasium as gym
import numpy as np

from skipper.envs.grid.config import GridConfig, GridOptions
from skipper.envs.grid.playable import HELP, GymGrid, Playable
from skipper.envs.grid.probe import Facts, probe
from skipper.envs.grid.scene import GridScene
from skipper.envs.grid.search import MOST_STATES, TooManyStatesError, read_table
from skipper.envs.grid.slots import Make
from skipper.envs.grid.table_env import TableVectorEnv, TaskTables
from skipper.envs.grid.tasks import SeedTasks, training_tasks, unseen_tasks
from skipper.envs.grid.truth import GridTruth
from skipper.envs.grid.vector_env import GridVectorEnv
from skipper.envs.registry import BasicFamily, Board, Detail, TaskSet, register_family
from skipper.types import Array, EnvironmentSpec, Worlds

EXAMPLES = 64  # at most, for initialisation that depends on data
DIRECTIONS = 4
MOST_BYTES = 2**30  # of all tables of a set of tasks
COLOURS = ("#000000", "#646464", "#00c83c", "#ff8000", "#56b4e9", "#cc79a7", "#f0e442", "#0072b2")
LETTERS = ".#G~abcdefghijklmnopqrstuvwxyzABCDEFHIJKLMNOPQRSTUVWXYZ"  # of the values of the first channel


class GridFamily(BasicFamily):
    """The tasks of one environment, which ``make`` makes."""

    config_type = GridConfig
    options_type = GridOptions
    set_kind = "tasks"
    max_steps = 64

    def __init__(self, name: str, make: Make) -> None:
        self.name, self._make = name, make

    @cached_property
    def env(self) -> Playable:
        """One of these environments, to ask what it is like."""
        return self._make()

    @cached_property
    def facts(self) -> Facts:
        """What was found out by trying the environment."""
        facts = probe(self.env)
        if facts.hidden:
            raise ValueError(facts.hidden)
        return facts

    @cached_property
    def scene(self) -> Any:
        """How states are imagined."""
        return GridScene(self.env.shape, self.env.vocabulary)

    @property
    def actions(self) -> tuple[str, ...]:
        """Names of the actions that have an effect."""
        return tuple(self.env.actions[action] for action in self.facts.actions)

    @property
    def cell_colours(self) -> dict[str, str]:
        """A colour for each value of the first channel."""
        count = self.env.vocabulary[0]
        return {letter: COLOURS[index % len(COLOURS)] for index, letter in enumerate(LETTERS[:count])}

    def world(self, preset: str) -> GridConfig:
        """What was found out, for every preset."""
        states = self.facts.states or MOST_STATES
        return self.config_type(max_steps=self.max_steps, stochastic=not self.facts.deterministic, states=states)

    def spec(self, world: GridConfig, tasks: TaskSet | None = None) -> EnvironmentSpec:
        """What agents must know before they act; examples are the starts of ``tasks``, or of tasks of the stream."""
        examples = self._stream_examples if tasks is None else self._starts(cast(SeedTasks, tasks).seeds[:EXAMPLES])
        return EnvironmentSpec(
            shape=self.env.shape,
            vocabulary=self.env.vocabulary,
            actions=len(self.facts.actions),
            longest=world.max_steps,
            scene=self.scene,
            examples=examples,
            gives_goals=self.facts.goal,
        )

    @cached_property
    def _stream_examples(self) -> Array:
        """First observations of tasks of the stream."""
        tasks = unseen_tasks(self.env, self.facts.layouts, self.config_type(), EXAMPLES, [0], "training")
        return self._starts(tasks.seeds)

    def _starts(self, seeds: Array) -> Array:
        """(B, W, H, C) first observations of the tasks of seeds (B,)."""
        return np.stack([self.env.reset(seed) for seed in seeds.tolist()])

    # Tasks

    def training_tasks(self, world: GridConfig, count: int, seed: int) -> SeedTasks:
        """``count`` different tasks of the training split."""
        return training_tasks(self.env, self.facts.layouts, world, count, seed)

    def evaluation_names(self, world: GridConfig) -> tuple[str, ...]:
        """One set: tasks of other seeds."""
        return ("unseen",)

    def evaluation_tasks(
        self, world: GridConfig, name: str, count: int, seed: int, split: str = "evaluation"
    ) -> SeedTasks:
        """``count`` tasks of the split."""
        if name not in self.evaluation_names(world):
            raise ValueError(f"unknown set {name!r}; available: unseen")
        return unseen_tasks(self.env, self.facts.layouts, world, count, [seed], split)

    def training_evaluation(self, world: GridConfig, tasks: TaskSet | None, count: int, seed: int) -> SeedTasks:
        """Training tasks as they are, or ``count`` tasks of the stream."""
        if tasks is not None:
            return cast(SeedTasks, tasks)
        return unseen_tasks(self.env, self.facts.layouts, world, count, [seed, 1], "training")

    # Playing

    def vector_env(self, num_envs: int, tasks: TaskSet | None, world: GridConfig, *, one_each: bool = False) -> Worlds:
        """Transition tables where tasks are played often and have few states, otherwise the environment itself."""
        chosen = cast("SeedTasks | None", tasks)
        tables = None if chosen is None or one_each else self._tables(chosen)
        if tables is not None:
            return TableVectorEnv(num_envs, tables, self.env, world)
        return GridVectorEnv(num_envs, self.playing(world), self.facts, chosen, world, one_each=one_each)

    def playing(self, world: GridConfig) -> Make:
        """Makes the environments that are played."""
        return self._make

    def has_tables(self, world: GridConfig) -> bool:
        """Whether fixed tasks are stepped by their transition tables."""
        return self.facts.states is not None and world.reward == "one" and not world.stochastic

    def _tables(self, tasks: SeedTasks) -> TaskTables | None:
        if not self.has_tables(tasks.world):
            return None
        tables, goals, used = [], [], 0
        try:
            for seed in tasks.seeds.tolist():
                tables.append(read_table(self.env, seed, self.facts.actions))
                start = self.env.reset(seed)
                goal = self.env.goal()
                goals.append(start if goal is None else goal)
                used += tables[-1].observation.nbytes
                if used > MOST_BYTES:
                    return None
        except TooManyStatesError:
            return None
        return TaskTables.join(tables, goals)

    def caveat(self) -> str:
        """How few layouts there are, if so."""
        return self.facts.layouts.caveat()

    def how_stepped(self, world: GridConfig, tasks: TaskSet | None) -> str:
        """How environments are stepped, in words."""
        if tasks is not None and self.has_tables(world):
            return f"tasks are stepped by transition tables of up to {self.facts.states:,} states"
        where = f"{world.workers} processes" if world.workers else "this process"
        return f"the environment itself is stepped, in {where}"

    # Pictures

    def draw(self, observation: Array) -> Array:
        """Cells in the colours of the first channel, the agent in red."""
        colours = np.array([_rgb(colour) for colour in COLOURS], np.uint8)
        shown = colours[observation[..., 0] % len(COLOURS)]
        shown[observation[..., -1] > 0] = (255, 0, 0)
        return np.kron(shown.swapaxes(0, 1), np.ones((8, 8, 1), np.uint8))

    def board(self, tasks: TaskSet, row: int) -> Board:
        """The first channel of a task's first observation."""
        seen = self.env.reset(int(cast(SeedTasks, tasks).seeds[row]))
        goal = self.env.goal()
        cell = None if goal is None else int(self.scene.agent_cell(goal[None])[0])
        return Board(self.env.shape[0], self.env.shape[1], self.layout(seen), cell)

    def layout(self, observation: Array) -> str:
        """One character for each cell of an observation (W, H, C)."""
        return "".join(LETTERS[min(value, len(LETTERS) - 1)] for value in observation[..., 0].ravel().tolist())

    def detail(self, observation: Array) -> Detail | None:
        """The first channel as it is now, and the agent's direction where the last channel has four."""
        directed = self.env.vocabulary[-1] == DIRECTIONS + 1
        return Detail(self.layout(observation), int(observation[..., -1].max()) - 1 if directed else None)

    def truth(self, tasks: TaskSet) -> GridTruth | None:
        """Ground truth from transition tables, where states are few and every task has a goal."""
        chosen = cast(SeedTasks, tasks)
        if self.facts.states is None or not self.facts.goal:
            return None
        tables = [read_table(self.env, seed, self.facts.actions) for seed in chosen.seeds.tolist()]
        goals = []
        for seed, table in zip(chosen.seeds.tolist(), tables, strict=True):
            self.env.reset(seed)
            goal = self.env.goal()
            same = (table.observation == goal).all((1, 2, 3)) if goal is not None else np.zeros(1, bool)
            goals.append(int(same.argmax()) if same.any() else -1)
        return GridTruth(tables, goals, chosen.world.max_steps)

    def about(self, world: GridConfig) -> dict[str, str]:
        """How tasks are divided, and the reward."""
        return {"environment": f"{self.name}, {self.facts.layouts.describe()}", "reward": world.reward}


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def register_grid(name: str, make: Any, *, max_steps: int = 64) -> None:
    """Make an own Gymnasium environment known: ``--env name`` trains on it.

    ``make`` is its class, or any function without arguments that returns one.
    """
    if isinstance(make, str):
        make = partial(gym.make, make, disable_env_checker=True)
    if not callable(make):
        raise ValueError(f"wanted a class or an id of Gymnasium for {name!r}, got {make!r}; {HELP}")
    family = GridFamily(name, partial(GymGrid, make))
    family.max_steps = max_steps
    register_family(name, lambda: family)
