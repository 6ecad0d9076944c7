"""Training speed and its breakdown, measured on the real loop of acting, storing and learning."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from skipper.agents.leap.config import LeapConfig
from skipper.agents.target_learner import TargetLearner
from skipper.agents.update_process import UpdaterProcess
from skipper.benchmarks.update import matmul_gflops, training_loop
from skipper.config import RunConfig
from skipper.envs.registry import find_family
from skipper.runtime.machine import describe_machine
from skipper.runtime.threads import configure_threads, peak_memory_mb
from skipper.training.evaluate import play
from skipper.training.loop import Loop

EPISODES = 20  # of an evaluation, played together
WARM_UP = 2_000  # environment steps before the first update that counts


class Stopwatch:
    """Sums the time of calls to some methods."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def watch(self, owner: Any, method: str, name: str) -> None:
        """From now on, add the time of ``owner.method`` to ``name``."""
        original: Callable[..., Any] = getattr(owner, method)

        def timed(*args: Any, **kwargs: Any) -> Any:
            begin = perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                self.seconds[name] += perf_counter() - begin

        setattr(owner, method, timed)


def warm_loop(config: RunConfig) -> Loop:
    """The loop of a run that has made its first updates; of LEAP in its second stage."""
    configure_threads(config.network_threads)
    if isinstance(config, LeapConfig):
        config = replace(config, learning=replace(config.learning, generator_steps=WARM_UP))
    loop = training_loop(config, learning_starts=WARM_UP)
    while loop.step < WARM_UP + 20 * config.learning.steps_per_update:
        loop.advance()
    return loop


class Speed(NamedTuple):
    """What decides how long a run takes."""

    steps: float  # of the environment per second, in training
    episodes: float  # per second, of an evaluation with the first weights


def training_speed(config: RunConfig, seconds: float) -> Speed:
    """Speed of training and of evaluation, each measured over ``seconds`` or a little more."""
    loop = warm_loop(config)
    before, begin = loop.step, perf_counter()
    while perf_counter() < begin + seconds:
        loop.advance()
    steps = (loop.step - before) / (perf_counter() - begin)
    family = find_family(config.env)
    tasks = family.evaluation_tasks(config.world, family.evaluation_names(config.world)[0], EPISODES, config.seed)

    def evaluate() -> None:
        play(loop.learner.evaluator(np.random.default_rng(config.seed)), family, tasks, config.seed)

    evaluate()  # compiles what is not compiled yet
    played, begin = 0, perf_counter()
    while perf_counter() < begin + seconds:
        evaluate()
        played += EPISODES
    return Speed(steps, played / (perf_counter() - begin))


def bench_train(config: RunConfig, seconds: float) -> dict[str, Any]:
    """Environment steps, updates and pairs per second over ``seconds``, shares of time, and peak memory."""
    loop = warm_loop(config)
    learner, envs = loop.learner, loop.envs
    watch = Stopwatch()
    watch.watch(learner, "act", "acting")
    watch.watch(envs, "step", "environments")
    watch.watch(learner, "observe", "storing, and waiting for target updates")
    updater = learner._updater if isinstance(learner, TargetLearner) else None
    if isinstance(learner, TargetLearner):
        watch.watch(learner._batches, "prepare", "preparing batches")
        watch.watch(updater, "update", "waiting for updates" if isinstance(updater, UpdaterProcess) else "updates")
    else:
        watch.watch(learner, "learn", "updates")
    steps, updates, done = loop.step, loop.updates, list[Mapping[str, float]]()
    updating = updater.usage()[0] if isinstance(updater, UpdaterProcess) else 0.0
    begin = perf_counter()
    while perf_counter() < begin + seconds:
        done += loop.advance()
    batch = getattr(config.learning, "batch_size", 0)
    pairs = sum(metrics.get("pairs", batch) for metrics in done)  # waits for the last ones
    passed = perf_counter() - begin
    memory = {"acting": peak_memory_mb()}
    if isinstance(updater, UpdaterProcess):
        until, memory["learning"] = updater.usage()
        watch.seconds["updates, in the other process"] = until - updating
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
        "peak_memory_mb": memory,  # by process
    }
