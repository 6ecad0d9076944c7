"""Skipper: agents that plan at decision time over imagined checkpoints, their baselines and experiments."""

from gymnasium.envs.registration import register

__version__ = "0.1.0"

register(
    id="skipper/LavaWorld-v0",
    entry_point="skipper.envs.gym_env:LavaWorldEnv",
    vector_entry_point="skipper.envs.vector:LavaVectorEnv",
)
