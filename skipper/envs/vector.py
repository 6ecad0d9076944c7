"""Thousands of lava worlds stepped together by one numba kernel, with no Python loop over them."""

from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numba
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from skipper.config import WorldConfig
from skipper.envs.gym_env import action_space, observation_space, resolve_tasks
from skipper.envs.lava import (
    ACTIONS,
    Rules,
    begin_episode,
    draw_agent,
    empty_table,
    move_agent,
    observe,
    slipped,
)
from skipper.envs.rng import seed_states
from skipper.envs.tasks import Tasks, TaskStream
from skipper.types import Array

Assignment = Literal["random", "own"]


class _Slots(NamedTuple):
    """The state of B environments."""

    row: Array  # (B,) int64 row of the task table that is played
    cell: Array  # (B,) int64
    steps: Array  # (B,) int64 since the episode began
    states: Array  # (B,) uint64 random streams
    observation: Array  # (B, S, 2) uint8
    goal: Array  # (B, S, 2) uint8 what the agent would see at the goal


@numba.njit(cache=True)
def _begin(slots, index, table, rules, stream, keep_row):
    row = slots.row[index] if keep_row or stream else -1
    row, cell = begin_episode(table, row, rules, stream, slots.states, index)
    slots.row[index] = row
    slots.cell[index] = cell
    slots.steps[index] = 0
    draw_agent(slots.observation[index], table.scenery[row], cell)
    draw_agent(slots.goal[index], table.scenery[row], table.goal[row])


@numba.njit(cache=True)
def _begin_where(slots, mask, table, rules, stream, keep_row):
    for index in range(len(mask)):
        if mask[index]:
            _begin(slots, index, table, rules, stream, keep_row)


@numba.njit(cache=True)
def _step(slots, actions, table, rules, stream, keep_row, reward, terminated, truncated, final):
    for index in range(len(actions)):
        row, cell = slots.row[index], slots.cell[index]
        action = slipped(actions[index], rules.slip, slots.states, index)
        to = table.successor[row, cell, action]
        slots.steps[index] += 1
        slots.cell[index] = to
        terminated[index] = table.terminal[row, to]
        reward[index] = 1.0 if to == table.goal[row] else 0.0
        truncated[index] = slots.steps[index] >= rules.max_steps and not terminated[index]
        image = slots.observation[index]
        move_agent(image, table.scenery[row], cell, to)
        if terminated[index] or truncated[index]:
            final[index] = image
            _begin(slots, index, table, rules, stream, keep_row)


class LavaVectorEnv(VectorEnv[Array, Array, Array]):
    """A Gymnasium vector environment with same-step autoreset.

    Where an episode ends, ``step`` returns the next episode's first observation and keeps the last one of
    the old episode in ``info["final_obs"]`` (rows where ``info["_final_obs"]`` is True). ``info["goal"]``
    holds the goal observations of the episodes that ``step``'s observations belong to.

    Environment i seeded with ``reset(seed=s)`` behaves like the single environment seeded with ``s + i``.
    ``assignment="own"`` makes environment i play task i for ever; "random" draws a task for every episode.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}

    def __init__(
        self,
        num_envs: int = 1,
        *,
        tasks: Tasks | TaskStream | None = None,
        assignment: Assignment = "random",
        **world: Any,
    ) -> None:
        self.tasks = resolve_tasks(tasks, world)
        if assignment not in ("random", "own"):
            raise ValueError(f"unknown assignment {assignment!r}; available: random, own")
        if assignment == "own" and (isinstance(self.tasks, TaskStream) or len(self.tasks) != num_envs):
            raise ValueError(f"assignment='own' needs exactly one fixed task per environment ({num_envs})")
        self.num_envs = num_envs
        config: WorldConfig = self.tasks.world
        self._stream = isinstance(self.tasks, TaskStream)
        self._keep_row = assignment == "own"
        self._rules = Rules.of(config, self.tasks.split if isinstance(self.tasks, TaskStream) else "train")
        self._table = self.tasks.table if isinstance(self.tasks, Tasks) else empty_table(num_envs, config.cells)
        self._image_shape = (num_envs, config.width, config.height, 2)
        self.single_observation_space = observation_space(config)
        self.single_action_space = action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._slots = _Slots(
            row=np.arange(num_envs),
            cell=np.zeros(num_envs, np.int64),
            steps=np.zeros(num_envs, np.int64),
            states=np.random.SeedSequence().generate_state(num_envs, np.uint64),
            observation=np.zeros((num_envs, config.cells, 2), np.uint8),
            goal=np.zeros((num_envs, config.cells, 2), np.uint8),
        )
        self._begun = False

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin a new episode everywhere, or where ``options["reset_mask"]`` (B,) is True."""
        mask = np.ones(self.num_envs, bool)
        if options and "reset_mask" in options:
            mask = np.asarray(options["reset_mask"], bool)
            if mask.shape != (self.num_envs,):
                raise ValueError(f"reset_mask must have shape ({self.num_envs},), got {mask.shape}")
        if isinstance(seed, int):
            super().reset(seed=seed)
            self._slots.states[:] = seed_states(np.uint64(seed) + np.arange(self.num_envs, dtype=np.uint64))
        elif seed is not None:
            given = [index for index, value in enumerate(seed) if value is not None]
            self._slots.states[given] = seed_states(np.array([seed[index] for index in given], np.uint64))
        _begin_where(self._slots, mask, self._table, self._rules, self._stream, self._keep_row)
        self._begun = True
        return self._observation(), self._info()

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Move every environment one step; episodes that end begin anew at once."""
        if not self._begun:
            raise gym.error.ResetNeeded("call reset() before the first step()")
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or actions.min() < 0 or actions.max() >= len(ACTIONS):
            raise ValueError(f"wanted {self.num_envs} actions from 0 to {len(ACTIONS) - 1}, got {actions!r}")
        reward = np.empty(self.num_envs)
        terminated = np.empty(self.num_envs, bool)
        truncated = np.empty(self.num_envs, bool)
        final = np.empty_like(self._slots.observation)
        _step(
            self._slots,
            actions,
            self._table,
            self._rules,
            self._stream,
            self._keep_row,
            reward,
            terminated,
            truncated,
            final,
        )
        info = self._info()
        done = terminated | truncated
        if done.any():
            info["final_obs"] = final.reshape(self._image_shape)
            info["_final_obs"] = done
        return self._observation(), reward, terminated, truncated, info

    def _observation(self) -> Array:
        return self._slots.observation.reshape(self._image_shape).copy()

    def _info(self) -> dict[str, Any]:
        return {"goal": self._slots.goal.reshape(self._image_shape).copy(), "task": self._slots.row.copy()}

    def state_dict(self) -> dict[str, Array]:
        """Everything that decides the future of the environments, as arrays."""
        slots = {name: getattr(self._slots, name).copy() for name in ("row", "cell", "steps", "states")}
        table = {f"table.{name}": column.copy() for name, column in self._table._asdict().items()}
        return slots | (table if self._stream else {})

    def load_state_dict(self, state: dict[str, Array]) -> None:
        """Continue exactly where ``state_dict`` was taken from an environment of the same configuration."""
        expected = self.state_dict()
        shapes = {name: value.shape for name, value in state.items()}
        wanted = {name: value.shape for name, value in expected.items()}
        if shapes != wanted:
            raise ValueError(f"the state is of another vector environment: wanted {wanted}, got {shapes}")
        for name, value in state.items():
            column = name.removeprefix("table.")
            getattr(self._slots if column == name else self._table, column)[:] = value
        row, cell = self._slots.row, self._slots.cell
        self._slots.observation[:] = observe(self._table, row, cell)
        self._slots.goal[:] = observe(self._table, row, self._table.goal[row])
        self._begun = True
