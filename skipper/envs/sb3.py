"""Our vector environments as Stable-Baselines3's ``VecEnv``, so that its agents train on the same tasks as ours."""

from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Any

import gymnasium as gym
import numpy as np

from skipper.envs.benchmarks import find_benchmark
from skipper.types import Array

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise ImportError("Stable-Baselines3 is not installed; install it with: pip install 'skipper-rl[sb3]'") from error

Indices = int | Iterable[int] | None


def one_hot(observation: Array, vocabulary: Sequence[int]) -> Array:
    """(B, K, W, H) float32 planes of 0 and 1, one for each value of each channel of observations (B, W, H, C)."""
    count, width, height, channels = observation.shape
    assert channels == len(vocabulary), (observation.shape, vocabulary)
    planes = np.empty((count, sum(vocabulary), width, height), np.float32)
    first = 0
    for channel, values in enumerate(vocabulary):
        each = np.arange(values, dtype=observation.dtype)[:, None, None]  # (V, 1, 1)
        np.equal(observation[:, None, :, :, channel], each, out=planes[:, first : first + values])
        first += values
    return planes


class SB3VecEnv(VecEnv):
    """A vector environment with same-step autoreset as Stable-Baselines3 wants it.

    With ``vocabulary``, the number of values of each channel, observations are planes of 0 and 1 (see ``one_hot``).
    Without, they are as the environment gives them; Stable-Baselines3 takes uint8 grids for photographs then, and
    divides small indices by 255. Ended episodes report their return and length (``episode``) and ``is_success``.
    """

    def __init__(self, envs: Any, vocabulary: Sequence[int] | None = None) -> None:
        self.envs, self.vocabulary = envs, vocabulary
        space = envs.single_observation_space
        if vocabulary is not None:
            width, height, _ = space.shape
            space = gym.spaces.Box(0.0, 1.0, (sum(vocabulary), width, height), np.float32)
        super().__init__(envs.num_envs, space, envs.single_action_space)
        self._actions: Array = np.zeros(self.num_envs, np.int64)
        self._returns, self._lengths = np.zeros(self.num_envs), np.zeros(self.num_envs, np.int64)
        self._begin = monotonic()

    def reset(self) -> Array:
        """First observations of new episodes, with the seeds of an earlier call of ``seed``."""
        observation, _ = self.envs.reset(seed=self._seeds[0])  # environment i takes this seed + i, as ``seed`` says too
        self._returns[:], self._lengths[:] = 0.0, 0
        self.reset_infos = [{} for _ in range(self.num_envs)]
        self._reset_seeds()
        self._reset_options()
        return self._encode(observation)

    def step_async(self, actions: Array) -> None:
        """Keep the actions for ``step_wait``."""
        self._actions = actions

    def step_wait(self) -> tuple[Array, Array, Array, list[dict[str, Any]]]:
        """Step every environment; where an episode ends, the next one begins at once."""
        observation, reward, terminated, truncated, info = self.envs.step(self._actions)
        self._returns += reward
        self._lengths += 1
        done = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if done.any():
            self._end_episodes(np.flatnonzero(done), reward, truncated & ~terminated, info["final_obs"], infos)
        return self._encode(observation), reward.astype(np.float32), done, infos

    def _end_episodes(
        self, rows: Array, reward: Array, truncated: Array, final: Array, infos: list[dict[str, Any]]
    ) -> None:
        seconds, last = round(monotonic() - self._begin, 6), self._encode(final[rows])
        for row, observation in zip(rows.tolist(), last, strict=True):
            infos[row] = {
                "terminal_observation": observation,
                "TimeLimit.truncated": bool(truncated[row]),
                "episode": {"r": float(self._returns[row]), "l": int(self._lengths[row]), "t": seconds},
                "is_success": bool(reward[row] > 0 and not truncated[row]),
            }
        self._returns[rows], self._lengths[rows] = 0.0, 0

    def _encode(self, observation: Array) -> Array:
        return observation if self.vocabulary is None else one_hot(observation, self.vocabulary)

    def close(self) -> None:
        """Close the environments."""
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """An attribute, which all environments share."""
        return [getattr(self.envs, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Refused: the environments are one object."""
        raise NotImplementedError(f"environments in lockstep have no attributes of their own ({attr_name!r})")

    def env_method(self, method_name: str, *args: Any, indices: Indices = None, **kwargs: Any) -> list[Any]:
        """Refused: the environments are one object."""
        raise NotImplementedError(f"environments in lockstep have no methods of their own ({method_name!r})")

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: Indices = None
    ) -> list[bool]:
        """No environment is wrapped."""
        return [False] * len(list(self._get_indices(indices)))


def make_sb3_env(benchmark: str = "skipper/LavaWorld-50-v0", num_envs: int = 16, task_seed: int = 0) -> SB3VecEnv:
    """The training tasks of a benchmark, observed as planes of 0 and 1."""
    found = find_benchmark(benchmark)
    tasks = found.training_tasks(task_seed)
    envs = found.family.vector_env(num_envs, tasks, found.world)
    return SB3VecEnv(envs, found.family.spec(found.world, tasks).vocabulary)
