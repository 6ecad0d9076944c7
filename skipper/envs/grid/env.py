"""One of these grids as a plain Gymnasium environment."""

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from skipper.envs.grid.config import GridConfig
from skipper.envs.grid.tasks import SeedTasks
from skipper.envs.grid.vector_env import GridVectorEnv
from skipper.types import Array

if TYPE_CHECKING:
    from skipper.envs.grid.family import GridFamily


class GridEnv(gym.Env[Array, Any]):
    """A new layout every episode, or one of some ``tasks``; observations are those that agents of this package see."""

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, family: "GridFamily", world: GridConfig, tasks: SeedTasks | None = None) -> None:
        self._envs = GridVectorEnv(1, family.playing(world), family.facts, tasks, world)
        self.observation_space = self._envs.single_observation_space
        self.action_space = self._envs.single_action_space
        self._over = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin a new episode; a seed determines it and all later ones."""
        super().reset(seed=None if seed is None else int(seed))
        observation, info = self._envs.reset(seed=None if seed is None else int(seed))
        self._over = False
        return observation[0], {"goal": info["goal"][0]}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        if self._over:
            raise gym.error.ResetNeeded("no episode is running: call reset() before step()")
        observation, reward, terminated, truncated, info = self._envs.step(np.array([action]))
        self._over = bool(terminated[0] or truncated[0])
        last = info["final_obs"] if self._over else observation
        return last[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), {"goal": info["goal"][0]}
