"""How fast a run trains, and what the time goes to: the real loop of acting, storing and learning, measured."""

import resource
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any

from skipper.agents.registry import learner_kind
from skipper.benchmarks.machine import describe_machine
from skipper.benchmarks.update import matmul_gflops
from skipper.config import RunConfig
from skipper.envs.spec import environment_spec
from skipper.envs.tasks import training_tasks
from skipper.envs.vector import LavaVectorEnv
from skipper.training.loop import Loop
from skipper.training.processor import prepare_processor

WARM_UP = 2_000  # environment steps before the first update that counts


class Stopwatch:
    """Adds up what calls of some methods take."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def watch(self, owner: Any, method: str, name: str) -> None:
        """Count the time that ``owner.method`` takes from now on under ``name``."""
        original: Callable[..., Any] = getattr(owner, method)

        def timed(*args: Any, **kwargs: Any) -> Any:
            begin = perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                self.seconds[name] += perf_counter() - begin

        setattr(owner, method, timed)


def bench_train(config: RunConfig, seconds: float) -> dict[str, Any]:
    """Environment steps, updates and pairs per second over ``seconds``, their costs, and the most memory used."""
    prepare_processor(config.network_threads)
    learner = learner_kind(config.agent).train(config, environment_spec(config.world))
    envs = LavaVectorEnv(config.environments, tasks=training_tasks(config.world, config.tasks, config.seed))
    loop = Loop(learner, envs, replace(config.learning, learning_starts=WARM_UP), config.seed)
    while loop.step < WARM_UP + 20 * config.learning.steps_per_update:
        loop.advance()
    watch = Stopwatch()
    watch.watch(learner, "act", "acting")
    watch.watch(envs, "step", "environments")
    watch.watch(learner, "observe", "storing")
    watch.watch(learner, "learn", "learning")
    steps, updates, pairs = loop.step, loop.updates, 0.0
    begin = perf_counter()
    while perf_counter() < begin + seconds:
        pairs += sum(metrics.get("pairs", config.learning.batch_size) for metrics in loop.advance())
    passed = perf_counter() - begin
    return {
        "machine": describe_machine(),
        "matmul_gflops": matmul_gflops(1.0),
        "agent": config.agent,
        "preset": config.preset,
        "threads": config.threads,
        "env_steps_per_s": (loop.step - steps) / passed,
        "updates_per_s": (loop.updates - updates) / passed,
        "pairs_per_s": pairs / passed,
        "share_of_time": {name: spent / passed for name, spent in watch.seconds.items()},
        "peak_memory_mb": peak_memory_mb(),
    }


def peak_memory_mb() -> float:
    """The most memory that this process ever held, in MB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1e6 if sys.platform == "darwin" else 1e3)  # macOS counts bytes, Linux kilobytes
