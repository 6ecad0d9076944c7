"""What our environments cost an agent of Stable-Baselines3: its speed here, and where the environment does nothing."""

from importlib.metadata import version
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np

from skipper.runtime.machine import describe_machine
from skipper.runtime.threads import configure_threads
from skipper.types import Array

ROLLOUT = 2048  # environment steps between updates, as in the library's default


class DoNothing:
    """A vector environment whose observations never change and whose episodes never end."""

    render_mode = None

    def __init__(self, num_envs: int, observation_space: Any, action_space: Any) -> None:
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = observation_space, action_space
        self._nothing = np.zeros(num_envs)
        self._never = np.zeros(num_envs, bool)
        self._observation = np.zeros((num_envs, *observation_space.shape), observation_space.dtype)

    def reset(self, *, seed: int | None) -> tuple[Array, dict[str, Any]]:
        """The same observation as always."""
        return self._observation, {}

    def step(self, _: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """The same again."""
        return self._observation, self._nothing, self._never, self._never, {}

    def close(self) -> None:
        """Nothing to close."""


def bench_sb3(benchmark: str, num_envs: int, rounds: int, threads: int) -> dict[str, Any]:
    """Steps per second of PPO in training, measured in turns; each round is one rollout and its updates."""
    if find_spec("stable_baselines3") is None:
        raise ValueError("Stable-Baselines3 is not installed; install it with: pip install 'skipper-rl[sb3]'")
    if min(num_envs, rounds, threads) < 1 or ROLLOUT % num_envs:
        raise ValueError(f"rounds and threads must be positive, and environments divide {ROLLOUT:,}; got {num_envs}")
    from stable_baselines3 import PPO

    from skipper.envs.sb3 import SB3VecEnv, make_sb3_env

    configure_threads(threads)
    ours = make_sb3_env(benchmark, num_envs)
    nothing = SB3VecEnv(DoNothing(num_envs, ours.observation_space, ours.action_space))
    envs = {"environment": ours, "do_nothing": nothing}
    models = {name: PPO("MlpPolicy", env, n_steps=ROLLOUT // num_envs, seed=0) for name, env in envs.items()}
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(1 + rounds):
        for name, model in models.items():
            begin = perf_counter()
            model.learn(ROLLOUT)
            seconds[name].append(perf_counter() - begin)
    rates = {name: ROLLOUT / float(np.median(times[1:])) for name, times in seconds.items()}  # the first warms up
    return {
        "machine": describe_machine() | {"stable_baselines3": version("stable_baselines3")},
        "benchmark": benchmark,
        "environments": num_envs,
        "threads": threads,
        "rounds": rounds,
        **{f"{name}_steps_per_s": rate for name, rate in rates.items()},
        "ratio": rates["environment"] / rates["do_nothing"],
    }
