"""Thousands of lava worlds in lockstep, stepped by one numba kernel without a Python loop."""

import hashlib
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.env import action_space, observation_space
from skipper.envs.lava.layout import (
    ACTIONS,
    begin_episode,
    draw_agent,
    move_agent,
    observe,
    slipped,
)
from skipper.envs.lava.tasks import Tasks, TaskStream, resolve_tasks, rules_and_table
from skipper.envs.rng import checked_seeds, seed_states
from skipper.runtime.jit import kernel
from skipper.types import Array

Assignment = Literal["random", "own"]


class _Slots(NamedTuple):
    """The state of B environments."""

    row: Array  # (B,) int64 row of the task table that is played
    cell: Array  # (B,) int64
    steps: Array  # (B,) int64 since the episode began
    states: Array  # (B,) uint64 random streams
    observation: Array  # (B, S, 2) uint8
    goal: Array  # (B, S, 2) uint8 observation of the agent at the goal


@kernel
def _begin(slots, index, table, rules, stream, keep_row):
    row = slots.row[index] if keep_row or stream else -1
    row, cell = begin_episode(table, row, rules, stream, slots.states, index)
    slots.row[index] = row
    slots.cell[index] = cell
    slots.steps[index] = 0
    draw_agent(slots.observation[index], table.scenery[row], cell)
    draw_agent(slots.goal[index], table.scenery[row], table.goal[row])


@kernel
def _begin_where(slots, mask, table, rules, stream, keep_row):
    for index in range(len(mask)):
        if mask[index]:
            _begin(slots, index, table, rules, stream, keep_row)


@kernel
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

    With ``reset(seed=s)``, environment i behaves like the single environment with seed ``s + i``, as is usual in
    Gymnasium: seeds of independent runs must therefore differ by more than the number of environments.
    With ``assignment="own"``, environment i always plays task i; "random" draws a task for every episode.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}

    def __init__(
        self,
        num_envs: int = 1,
        *,
        tasks: Tasks | TaskStream | None = None,
        assignment: Assignment = "random",
        render_mode: None = None,
        **world: Any,
    ) -> None:
        if render_mode is not None:
            raise ValueError("the vector environment does not render; use the single one")
        self.tasks = resolve_tasks(tasks, world)
        if assignment not in ("random", "own"):
            raise ValueError(f"unknown assignment {assignment!r}; available: random, own")
        if assignment == "own" and (isinstance(self.tasks, TaskStream) or len(self.tasks) != num_envs):
            raise ValueError(f"assignment='own' needs exactly one fixed task per environment ({num_envs})")
        self.num_envs = num_envs
        config: LavaConfig = self.tasks.world
        self._stream = isinstance(self.tasks, TaskStream)
        self._keep_row = assignment == "own"
        self._rules, self._table = rules_and_table(self.tasks, num_envs)
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
        if not (self._begun or mask.all()):
            raise gym.error.ResetNeeded("the first reset() must begin all environments")
        self._seed(seed, mask)
        _begin_where(self._slots, mask, self._table, self._rules, self._stream, self._keep_row)
        self._begun = True
        return self._observation(), self._info()

    def _seed(self, seed: int | list[int | None] | None, mask: Array) -> None:
        """Seed the streams of the environments that begin an episode now."""
        if seed is None:
            return
        if not isinstance(seed, list | tuple | np.ndarray):
            (first,) = checked_seeds([seed])
            seeds = first + np.arange(self.num_envs, dtype=np.uint64)
            self._slots.states[mask] = seed_states(seeds)[mask]
            return
        if len(seed) != self.num_envs:
            raise ValueError(f"wanted {self.num_envs} seeds, got {len(seed)}")
        given = [index for index, value in enumerate(seed) if value is not None and mask[index]]
        self._slots.states[given] = seed_states(checked_seeds([seed[index] for index in given]))

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Step every environment; where an episode ends, the next one begins at once."""
        if not self._begun:
            raise gym.error.ResetNeeded("call reset() before the first step()")
        actions = np.asarray(actions)
        whole = np.issubdtype(actions.dtype, np.integer) and actions.shape == (self.num_envs,)
        if not whole or actions.min() < 0 or actions.max() >= len(ACTIONS):
            raise ValueError(f"wanted {self.num_envs} actions from 0 to {len(ACTIONS) - 1}, got {actions!r}")
        reward = np.empty(self.num_envs)
        terminated = np.empty(self.num_envs, bool)
        truncated = np.empty(self.num_envs, bool)
        final = np.zeros_like(self._slots.observation)
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
        """Everything that determines the future of the environments, as arrays."""
        slots = {name: getattr(self._slots, name).copy() for name in ("row", "cell", "steps", "states")}
        if self._stream:
            tasks = {f"table.{name}": column.copy() for name, column in self._table._asdict().items()}
        else:
            tasks = {"tasks": self._fingerprint()}
        return slots | tasks | {"begun": np.array(self._begun)}

    def _fingerprint(self) -> Array:
        """A hash of the tasks."""
        content = self._table.scenery.tobytes() + self._table.start.tobytes()
        return np.frombuffer(hashlib.sha256(content).digest()[:8], np.uint64)

    def load_state_dict(self, state: dict[str, Array]) -> None:
        """Continue exactly where ``state_dict`` was taken from an environment of the same configuration."""
        expected = self.state_dict()
        shapes = {name: value.shape for name, value in state.items()}
        wanted = {name: value.shape for name, value in expected.items()}
        if shapes != wanted:
            raise ValueError(f"the state is of another vector environment: wanted {wanted}, got {shapes}")
        if not self._stream and state["tasks"] != expected["tasks"]:
            raise ValueError("the state is of a vector environment with other tasks")
        for name in ("row", "cell", "steps", "states"):
            getattr(self._slots, name)[:] = state[name]
        if self._stream:
            for name, column in self._table._asdict().items():
                column[:] = state[f"table.{name}"]
        row, cell = self._slots.row, self._slots.cell
        self._slots.observation[:] = observe(self._table, row, cell)
        self._slots.goal[:] = observe(self._table, row, self._table.goal[row])
        self._begun = bool(state["begun"])
