"""Tasks whose transition tables were read from the real environment, stepped by one numba kernel."""

import hashlib
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from skipper.envs.grid.config import GridConfig
from skipper.envs.grid.playable import Playable
from skipper.envs.grid.search import Table
from skipper.envs.grid.vector_env import checked_actions, observation_space, reseed
from skipper.envs.rng import random_below
from skipper.runtime.jit import kernel
from skipper.types import Array

COLUMNS = ("row", "state", "steps", "states")


class TaskTables(NamedTuple):
    """The tables of N tasks, one after the other: P states in all."""

    start: Array  # (N,) int64 first state of each task
    observation: Array  # (P, W, H, C) uint8
    successor: Array  # (P, A) int64
    reward: Array  # (P, A) float64, 1 where the environment pays anything
    terminal: Array  # (P,) bool
    goal: Array  # (N, W, H, C) uint8

    @classmethod
    def join(cls, tables: list[Table], goals: list[Array]) -> "TaskTables":
        """Number the states of all tables in one row."""
        start = np.cumsum([0, *(len(table.terminal) for table in tables[:-1])])
        return cls(
            start,
            np.concatenate([table.observation for table in tables]),
            np.concatenate(
                [table.successor.astype(np.int64) + first for table, first in zip(tables, start, strict=True)]
            ),
            np.concatenate([(table.reward > 0).astype(float) for table in tables]),
            np.concatenate([table.terminal for table in tables]),
            np.stack(goals),
        )


class _Slots(NamedTuple):
    """The state of B environments."""

    row: Array  # (B,) int64 the task that is played
    state: Array  # (B,) int64
    steps: Array  # (B,) int64 since the episode began
    states: Array  # (B,) uint64 random streams


@kernel
def _begin(slots, index, start, keep_row):
    if not keep_row:
        slots.row[index] = random_below(slots.states, index, len(start))
    slots.state[index] = start[slots.row[index]]
    slots.steps[index] = 0


@kernel
def _begin_all(slots, start, keep_row):
    for index in range(len(slots.row)):
        _begin(slots, index, start, keep_row)


@kernel
def _step(slots, actions, tables, max_steps, keep_row, reward, terminated, truncated, last):
    for index in range(len(actions)):
        state, action = slots.state[index], actions[index]
        to = tables.successor[state, action]
        reward[index] = tables.reward[state, action]
        slots.steps[index] += 1
        slots.state[index] = last[index] = to
        terminated[index] = tables.terminal[to]
        truncated[index] = slots.steps[index] >= max_steps and not terminated[index]
        if terminated[index] or truncated[index]:
            _begin(slots, index, tables.start, keep_row)


class TableVectorEnv(VectorEnv[Array, Array, Array]):
    """As ``GridVectorEnv`` on fixed tasks, step for step, without the environment."""

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}

    def __init__(
        self, num_envs: int, tables: TaskTables, example: Playable, world: GridConfig, *, one_each: bool = False
    ) -> None:
        """``example`` gives the spaces."""
        if one_each and len(tables.start) != num_envs:
            raise ValueError(f"one_each needs exactly one task for each of the {num_envs} environments")
        self.num_envs, self.world, self._tables, self._keep_row = num_envs, world, tables, one_each
        self.single_observation_space = observation_space(example)
        self.single_action_space = gym.spaces.Discrete(tables.successor.shape[1])
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        rows, zeros = np.arange(num_envs), np.zeros((2, num_envs), np.int64)
        self._slots = _Slots(rows, zeros[0], zeros[1], np.zeros(num_envs, np.uint64))
        self._begun = False

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin a new episode everywhere; a seed determines it and all later ones."""
        reseed(self._slots.states, seed, begun=self._begun)
        _begin_all(self._slots, self._tables.start, self._keep_row)
        self._begun = True
        return self._tables.observation[self._slots.state], self._info()

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Step every environment; where an episode ends, the next one begins at once."""
        if not self._begun:
            raise gym.error.ResetNeeded("call reset() before the first step()")
        actions = checked_actions(actions, self.num_envs, self._tables.successor.shape[1]).astype(np.int64)
        reward, last = np.empty(self.num_envs), np.empty(self.num_envs, np.int64)
        terminated, truncated = np.empty((2, self.num_envs), bool)
        ends = reward, terminated, truncated, last
        _step(self._slots, actions, self._tables, self.world.max_steps, self._keep_row, *ends)
        info, ended = self._info(), terminated | truncated
        if ended.any():
            info |= {"final_obs": self._tables.observation[last], "_final_obs": ended}
        return self._tables.observation[self._slots.state], reward, terminated, truncated, info

    def _info(self) -> dict[str, Any]:
        return {"goal": self._tables.goal[self._slots.row], "task": self._slots.row.copy()}

    def state_dict(self) -> dict[str, Array]:
        """Everything that determines the future of the environments, as arrays."""
        columns = {name: getattr(self._slots, name).copy() for name in COLUMNS}
        return columns | {"begun": np.array(self._begun), "tasks": self._fingerprint()}

    def _fingerprint(self) -> Array:
        """A hash of the tasks."""
        digest = hashlib.sha256(self._tables.successor.tobytes() + self._tables.start.tobytes())
        return np.frombuffer(digest.digest()[:8], np.uint64)

    def load_state_dict(self, state: dict[str, Array]) -> None:
        """Continue exactly where ``state_dict`` was taken from an environment of the same tasks."""
        if state["tasks"] != self._fingerprint():
            raise ValueError("the state is of a vector environment with other tasks")
        for name in COLUMNS:
            getattr(self._slots, name)[:] = state[name]
        self._begun = bool(state["begun"])
