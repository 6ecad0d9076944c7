"""Skipper: agents that plan at decision time over imagined checkpoints, their baselines and experiments."""

from typing import Any

from gymnasium.envs.registration import register

from skipper.envs.benchmarks import BENCHMARKS

__version__ = "0.1.0"
__all__ = ["load"]

register(
    id="skipper/LavaWorld-v0",
    entry_point="skipper.envs.lava.env:LavaWorldEnv",
    vector_entry_point="skipper.envs.lava.vector_env:LavaVectorEnv",
)
for _name, _benchmark in BENCHMARKS.items():
    if _benchmark.tasks:  # "skipper/LavaWorld-50-v0": 50 fixed training tasks, which ``task_seed`` decides
        register(
            id=_name,
            entry_point="skipper.envs.lava.benchmark_env:make_env",
            vector_entry_point="skipper.envs.lava.benchmark_env:make_vector_env",
            kwargs={"count": _benchmark.tasks},
        )


def __getattr__(name: str) -> Any:
    if name == "load":  # late, since it imports the network library
        from skipper.training.load import load

        return load
    raise AttributeError(f"module 'skipper' has no attribute {name!r}")
