"""PPO of Stable-Baselines3 on a benchmark's training tasks, scored on the same unseen tasks as every agent here.

Needs one more library; in a clone: pip install '.[sb3]'. The same score as a table or JSON, for a saved model:
skipper evaluate --policy compare_with_sb3:load_ppo --weights ppo.zip --benchmark skipper/LavaWorld-50-v0 --seed 20
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from skipper.agents.policy_function import PolicyFunction
from skipper.agents.registry import make_baseline
from skipper.envs.benchmarks import find_benchmark
from skipper.training.evaluate import play, summarise
from skipper.types import Array

BENCHMARK, TASK_SEED, TEST_SEED = "skipper/LavaWorld-50-v0", 20, 20


def as_policy(model: Any) -> Callable[[Array], Array]:
    """The model's most likely actions for grids (B, W, H, C), which it sees as planes of 0 and 1."""
    from skipper.envs.sb3 import one_hot

    found = find_benchmark(BENCHMARK)
    vocabulary = found.family.spec(found.world).vocabulary
    return lambda observation: np.asarray(model.predict(one_hot(observation, vocabulary), deterministic=True)[0])


def load_ppo(path: str) -> Callable[[Array], Array]:
    """The policy of a saved model, for ``skipper evaluate --policy``."""
    from stable_baselines3 import PPO

    return as_policy(PPO.load(path, device="cpu"))


def train_ppo(steps: int, out: Path) -> Any:
    """PPO after ``steps`` steps on the benchmark's training tasks. A few show that it runs; learning takes millions."""
    from stable_baselines3 import PPO

    from skipper.envs.sb3 import make_sb3_env

    model = PPO("MlpPolicy", make_sb3_env(BENCHMARK, 16, TASK_SEED), n_steps=32, n_epochs=2, seed=0, device="cpu")
    model.learn(steps)
    model.save(out)
    return model


def score(agent: Any, episodes: int) -> float:
    """The benchmark's score: mean success over its test sets."""
    benchmark = find_benchmark(BENCHMARK)
    sets = benchmark.test_tasks(episodes, TEST_SEED)
    return float(
        np.mean([summarise(play(agent, benchmark.family, tasks, TEST_SEED)).success for tasks in sets.values()])
    )


def main(steps: int = 2_048, episodes: int = 50, out: Path = Path("ppo.zip")) -> None:
    """Train PPO for a moment and compare it with random and optimal actions."""
    try:
        model = train_ppo(steps, out)
    except ImportError:
        sys.exit("this example needs Stable-Baselines3: pip install 'skipper-rl[sb3]'")
    benchmark, rng = find_benchmark(BENCHMARK), np.random.default_rng(0)
    spec = benchmark.family.spec(benchmark.world)
    agents: dict[str, Any] = {"PPO": PolicyFunction(as_policy(model), "PPO", spec.actions)}
    agents |= {name: make_baseline(name, spec, rng) for name in ("random", "optimal")}
    for name, agent in agents.items():
        print(f"{name:10} {score(agent, episodes):.2f}")
    print(f"saved: {out}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
