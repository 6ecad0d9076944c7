"""The environments behind the benchmark ids, such as ``skipper/LavaWorld-50-v0``: fixed training tasks by number."""

from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.env import LavaWorldEnv
from skipper.envs.lava.tasks import training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv


def make_env(count: int, task_seed: int = 0, render_mode: str | None = None) -> LavaWorldEnv:
    """One of ``count`` training tasks in every episode: those that ``skipper train --seed task_seed`` trains on."""
    return LavaWorldEnv(render_mode, tasks=training_tasks(LavaConfig(), count, task_seed))


def make_vector_env(num_envs: int, count: int, task_seed: int = 0) -> LavaVectorEnv:
    """The same, many environments in lockstep."""
    return LavaVectorEnv(num_envs, tasks=training_tasks(LavaConfig(), count, task_seed))
