"""The lava world as a Gymnasium environment, ``skipper/LavaWorld-v0``."""

from numbers import Integral
from typing import Any

import gymnasium as gym
import numpy as np

from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.layout import ACTIONS, begin_episode, draw_agent, slipped
from skipper.envs.lava.render import render_rgb, render_text
from skipper.envs.lava.tasks import Tasks, TaskStream, resolve_tasks, rules_and_table
from skipper.envs.rng import checked_seeds, seed_states
from skipper.types import Array


def observation_space(world: LavaConfig) -> gym.spaces.Box:
    """Objects and colours of every cell, (W, H, 2), in MiniGrid's indices."""
    return gym.spaces.Box(0, 255, (world.width, world.height, 2), np.uint8)


def action_space() -> gym.spaces.Discrete:
    """East, south, west, north."""
    return gym.spaces.Discrete(len(ACTIONS))


class LavaWorldEnv(gym.Env[Array, Any]):
    """Cross a field of lava to the goal.

    Observation: ``Box(0, 255, (W, H, 2), uint8)``, object and colour of every cell ``[x, y]`` in MiniGrid's
    indices. The agent's colour shows what is under it: red on empty, green on the goal, yellow on lava.
    Actions: 0 east (+x), 1 south (+y), 2 west (-x), 3 north (-y). A move off the grid has no effect but takes a step.
    Reward: 1 on entering the goal, else 0. Entering the goal or lava terminates; ``max_steps`` truncates.
    Info: ``goal``, the observation with the agent on the goal; ``task``, which of the fixed tasks is played (0 in a
    stream, where every task is new).

    With no ``tasks`` every episode is a new task of the world that the keywords of ``LavaConfig`` describe;
    ``tasks=training_tasks(...)`` plays a random one of a fixed set.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "ansi"], "render_fps": 8}

    def __init__(
        self, render_mode: str | None = None, *, tasks: Tasks | TaskStream | None = None, **world: Any
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            available = ", ".join(self.metadata["render_modes"])
            raise ValueError(f"unknown render_mode {render_mode!r}; available: {available}")
        self.render_mode = render_mode
        self.tasks = resolve_tasks(tasks, world)
        config = self.tasks.world
        self._stream = isinstance(self.tasks, TaskStream)
        self._rules, self._table = rules_and_table(self.tasks, 1)
        self._image_shape = (config.width, config.height, 2)
        self.observation_space = observation_space(config)
        self.action_space = action_space()
        self._states: Array | None = None
        self._steps, self._over = 0, True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin a new episode; a seed determines it and all later ones."""
        super().reset(seed=None if seed is None else int(seed))
        if seed is not None:
            self._states = seed_states(checked_seeds([seed]))
        elif self._states is None:
            self._states = self.np_random.integers(0, 2**64, 1, dtype=np.uint64)
        row = 0 if self._stream else -1
        self._row, self._cell = begin_episode(self._table, row, self._rules, self._stream, self._states, 0)
        self._steps, self._over = 0, False
        self._goal = self._observe(int(self._table.goal[self._row]))
        return self._observe(self._cell), self._info()

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Move one step."""
        if self._states is None or self._over:
            raise gym.error.ResetNeeded("no episode is running: call reset() before step()")
        if not isinstance(action, Integral) or not 0 <= action < len(ACTIONS):
            raise ValueError(f"wanted an action from 0 to {len(ACTIONS) - 1}, got {action!r}")
        if self._rules.slip > 0:  # calling a kernel takes longer than the rest of a step
            action = slipped(action, self._rules.slip, self._states, 0)
        self._cell = int(self._table.successor[self._row, self._cell, action])
        self._steps += 1
        terminated = bool(self._table.terminal[self._row, self._cell])
        truncated = self._steps >= self._rules.max_steps and not terminated
        self._over = terminated or truncated
        reward = float(self._cell == self._table.goal[self._row])
        return self._observe(self._cell), reward, terminated, truncated, self._info()

    def render(self) -> Any:
        """The current grid, as an image (H * 32, W * 32, 3) or as text."""
        if self.render_mode is None or self._states is None:
            return None
        observation = self._observe(self._cell)
        return render_text(observation) if self.render_mode == "ansi" else render_rgb(observation)

    def _observe(self, cell: int) -> Array:
        image = np.empty(self._image_shape, np.uint8)
        draw_agent(image.reshape(-1, 2), self._table.scenery[self._row], cell)
        return image

    def _info(self) -> dict[str, Any]:
        return {"goal": self._goal.copy(), "task": self._row}
