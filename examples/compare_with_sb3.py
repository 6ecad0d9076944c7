"""The lava world under Stable-Baselines3's PPO, evaluated on the same unseen tasks as every agent of this package.

Needs one more library: pip install 'skipper-rl[sb3]'
"""

import sys
from typing import Any

import gymnasium as gym
import numpy as np

from skipper.agents.registry import make_baseline
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import LAVA
from skipper.envs.lava.tasks import training_tasks
from skipper.training.evaluate import play, summarise
from skipper.types import Decision, TimeStep

WORLD, STEPS, EPISODES = LavaConfig(width=6, height=6, max_steps=30), 2_000, 20


class LibraryAgent:
    """A policy of Stable-Baselines3 as an agent of this package: anything with ``act`` can be evaluated."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def act(self, timestep: TimeStep) -> Decision:
        """The policy's most likely actions."""
        flat = timestep.observation.reshape(len(timestep.observation), -1)
        return Decision(np.asarray(self._model.predict(flat, deterministic=True)[0], np.int64))


def make_env() -> gym.Env[Any, Any]:
    """One of 50 training tasks in every episode, flattened for a policy of linear layers."""
    env = gym.make("skipper/LavaWorld-v0", tasks=training_tasks(WORLD, 50, seed=0))
    return gym.wrappers.FlattenObservation(env)


def compare(agents: dict[str, Any]) -> dict[str, float]:
    """Success of every agent on unseen tasks of one difficulty."""
    tasks = LAVA.evaluation_tasks(WORLD, "0.35", EPISODES, seed=0)
    return {name: summarise(play(agent, LAVA, tasks, seed=0)).success for name, agent in agents.items()}


def main() -> None:
    """Train PPO for a moment and compare it with random and optimal actions."""
    try:
        from stable_baselines3 import PPO
    except ImportError:
        sys.exit("this example needs Stable-Baselines3: pip install 'skipper-rl[sb3]'")
    model = PPO("MlpPolicy", make_env(), n_steps=128, seed=0).learn(STEPS)
    rng, spec = np.random.default_rng(0), LAVA.spec(WORLD)
    agents = {"PPO": LibraryAgent(model)} | {name: make_baseline(name, spec, rng) for name in ("random", "optimal")}
    for name, success in compare(agents).items():
        print(f"{name:10} {success:.2f}")


if __name__ == "__main__":
    main()
