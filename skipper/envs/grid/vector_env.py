"""Stock environments in lockstep; a state is saved as seeds and actions, and taken up again by playing them."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from skipper.envs.grid.config import GridConfig
from skipper.envs.grid.playable import Playable
from skipper.envs.grid.probe import Facts
from skipper.envs.grid.slots import LocalSlots, Make, Slots, WorkerSlots
from skipper.envs.grid.tasks import MOST_DRAWS, SeedTasks, seed_in_split
from skipper.envs.rng import checked_seeds, random_below, random_word, seed_states
from skipper.types import Array

COLUMNS = ("row", "seed", "noise", "steps", "states", "history")


def observation_space(env: Playable) -> gym.spaces.Box:
    """(W, H, C) with the largest value of each channel."""
    high = np.broadcast_to(np.array(env.vocabulary) - 1, env.shape).astype(np.uint8)
    return gym.spaces.Box(np.zeros(env.shape, np.uint8), high, dtype=np.uint8)


class GridVectorEnv(VectorEnv[Array, Array, Array]):
    """A Gymnasium vector environment with same-step autoreset over any ``Playable``.

    Every episode draws one of the ``tasks``, or with ``one_each`` keeps to its own; None draws a new layout of the
    training split every time. ``info["goal"]`` holds the goal observations where tasks have them.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}

    def __init__(
        self,
        num_envs: int,
        make: Make,
        facts: Facts,
        tasks: SeedTasks | None,
        world: GridConfig,
        *,
        one_each: bool = False,
    ) -> None:
        if one_each and (tasks is None or len(tasks) != num_envs):
            raise ValueError(f"one_each needs exactly one task for each of the {num_envs} environments")
        self.num_envs, self.tasks, self.world, self._facts, self._one_each = num_envs, tasks, world, facts, one_each
        example = make()
        self.single_observation_space = observation_space(example)
        self.single_action_space = gym.spaces.Discrete(len(facts.actions))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        workers = min(world.workers, num_envs)
        self._slots: Slots = WorkerSlots(make, num_envs, workers) if workers else LocalSlots(make, num_envs)
        self._actions = np.array(facts.actions)
        self._row = np.arange(num_envs)
        self._seed, self._steps = np.zeros((2, num_envs), np.int64)
        self._noise, self._states = np.zeros((2, num_envs), np.uint64)
        self._history = np.zeros((num_envs, world.max_steps), np.uint8)
        self._observation, self._goal = np.zeros((2, num_envs, *example.shape), np.uint8)
        self._begun = False

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin a new episode everywhere; a seed determines it and all later ones."""
        reseed(self._states, seed, begun=self._begun)
        self._begin(list(range(self.num_envs)))
        self._begun = True
        return self._observation.copy(), self._info()

    def _begin(self, indices: list[int]) -> None:
        """Begin episodes, of the training split where tasks are a stream."""
        self._steps[indices], self._history[indices] = 0, 0
        if self.tasks is not None:
            for index in indices if not self._one_each else ():
                self._row[index] = random_below(self._states, index, len(self.tasks))
            self._seed[indices] = self.tasks.seeds[self._row[indices]]
            self._draw_noise(indices)
            self._reset(indices)
            return
        for _ in range(MOST_DRAWS):
            for index in indices:
                self._seed[index] = seed_in_split(int(random_word(self._states, index)), "training")
            self._draw_noise(indices)
            self._reset(indices)
            layouts = self._facts.layouts
            indices = [index for index in indices if not layouts.belongs(self._observation[index], "training")]
            if not indices:
                return
        raise ValueError(f"found no layout of the training split in {MOST_DRAWS:,} draws")

    def _draw_noise(self, indices: list[int]) -> None:
        """Seed random effects, where there are any: a fixed task must not repeat them."""
        for index in indices if not self._facts.deterministic else ():
            self._noise[index] = random_word(self._states, index)

    def _reset(self, indices: list[int]) -> None:
        noise = [None if self._facts.deterministic else int(self._noise[index]) for index in indices]
        seen = self._slots.reset(indices, self._seed[indices].tolist(), noise)
        self._observation[indices], self._goal[indices] = seen

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Step every environment; where an episode ends, the next one begins at once."""
        if not self._begun:
            raise gym.error.ResetNeeded("call reset() before the first step()")
        actions = checked_actions(actions, self.num_envs, len(self._actions))
        self._history[np.arange(self.num_envs), self._steps] = actions
        own_actions = self._actions[actions].tolist()
        observation, own, terminated, truncated = self._slots.step(range(self.num_envs), own_actions)
        self._steps += 1
        truncated = (truncated | (self._steps >= self.world.max_steps)) & ~terminated
        reward = own if self.world.reward == "own" else (own > 0).astype(float)
        self._observation[:] = observation
        ended = terminated | truncated
        final = {}
        if ended.any():
            final = {"final_obs": observation, "_final_obs": ended}
            self._begin(np.flatnonzero(ended).tolist())
        return self._observation.copy(), reward, terminated, truncated, self._info() | final

    def _info(self) -> dict[str, Any]:
        return {"goal": self._goal.copy(), "task": self._row.copy()}

    def close(self, **kwargs: Any) -> None:
        """End worker processes."""
        self._slots.close()

    def state_dict(self) -> dict[str, Array]:
        """Everything that determines the future of the environments, as arrays."""
        columns = {name: getattr(self, f"_{name}").copy() for name in COLUMNS}
        return columns | {"begun": np.array(self._begun)}

    def load_state_dict(self, state: dict[str, Array]) -> None:
        """Continue where ``state_dict`` was taken: the episodes are played again up to there."""
        for name in COLUMNS:
            column = getattr(self, f"_{name}")
            if state[name].shape != column.shape:
                raise ValueError(f"the state is of another vector environment: {name} has shape {state[name].shape}")
            column[:] = state[name]
        self._begun = bool(state["begun"])
        if not self._begun:
            return
        self._reset(list(range(self.num_envs)))
        for step in range(int(self._steps.max())):
            indices = np.flatnonzero(self._steps > step)
            actions = self._actions[self._history[indices, step]].tolist()
            self._observation[indices] = self._slots.step(indices.tolist(), actions).observation


def reseed(states: Array, seed: int | list[int | None] | None, *, begun: bool) -> None:
    """Set the random streams ``states`` (B,) by one seed; without one they begin anywhere, and then go on."""
    if isinstance(seed, list):
        raise ValueError("wanted one seed for all environments")
    if seed is not None:
        (first,) = checked_seeds([seed])
        states[:] = seed_states(first + np.arange(len(states), dtype=np.uint64))
    elif not begun:
        states[:] = np.random.SeedSequence().generate_state(len(states), np.uint64)


def checked_actions(actions: Array, count: int, number: int) -> Array:
    """(B,) actions, after checking that they are what the environments take."""
    actions = np.asarray(actions)
    whole = np.issubdtype(actions.dtype, np.integer) and actions.shape == (count,)
    if not whole or actions.min() < 0 or actions.max() >= number:
        raise ValueError(f"wanted {count} actions from 0 to {number - 1}, got {actions!r}")
    return actions
