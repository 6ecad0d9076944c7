"""Speed of a gradient update, absolute and relative to the ceiling of its network on this machine.

The ceiling is the speed of the update's convolutions and matrix products, forward and backward, when they are run
alone on the same tensors. The rest of an update is overhead.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from skipper.agents.leap.config import LeapConfig
from skipper.agents.registry import agent_kind
from skipper.agents.skipper.config import SkipperConfig, as_variant
from skipper.agents.target_config import TargetRunConfig
from skipper.benchmarks.timing import median_seconds, seconds_in_turns
from skipper.config import RunConfig
from skipper.envs.registry import find_family
from skipper.nets.layers import seeded_initialisation
from skipper.runtime.machine import describe_machine
from skipper.runtime.threads import configure_threads
from skipper.training.loop import Loop
from skipper.training.settings import supported
from skipper.types import Learner

STEPS = 4_000  # environment steps of random experience for the measured updates


def matmul_gflops(seconds: float) -> float:
    """Speed of large single-precision matrix products, in GFLOP/s."""
    size = 1536
    with seeded_initialisation(0):
        one, two = torch.rand(size, size), torch.rand(size, size)
    return 2 * size**3 / median_seconds(lambda: one @ two, seconds) / 1e9


class Operations(TorchDispatchMode):
    """Records the operations that count as floating-point work, and their arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []
        self.flop = 0

    def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record the call and make it."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func._overloadpacket in flop_registry:
            self.flop += flop_registry[func._overloadpacket](*args, **kwargs, out_val=result)
            self.calls.append((func, args, kwargs))
        return result


def measure_update(learn: Callable[[], Any], every: int, seconds: float) -> dict[str, float]:
    """Milliseconds, FLOP and share of the network's ceiling, as means over ``every`` consecutive updates."""

    def update() -> None:
        for _ in range(every):
            learn()

    update()
    with Operations() as operations:
        update()

    @torch.no_grad()
    def alone() -> None:
        for func, args, kwargs in operations.calls:
            func(*args, **kwargs)

    whole, least = (seconds_in_turns([update, alone], 2 * seconds) / every).T
    gflop = operations.flop / every / 1e9
    return {
        "ms": float(np.median(whole)) * 1e3,
        "gflop": gflop,
        "ceiling_gflops": gflop / float(np.median(least)),
        "gflops": gflop / float(np.median(whole)),
        "share": float(np.median(least / whole)),
    }


def training_loop(config: RunConfig, learning_starts: int) -> Loop:
    """The loop of a run that starts to learn after ``learning_starts`` steps."""
    family = find_family(config.env)
    tasks = family.training_tasks(config.world, config.tasks, config.seed)
    spec = family.spec(config.world, tasks)
    config, _ = supported(config, spec)
    learner = agent_kind(config.agent).load().train(config, spec)
    envs = family.vector_env(config.environments, tasks, config.world)
    settings = replace(config.learning, learning_starts=learning_starts)
    return Loop(learner, envs, settings, config.seed, family.success)


def learner_with_experience(config: RunConfig) -> Learner:
    """A learner with a few thousand stored transitions of its first, random, steps."""
    loop = training_loop(config, learning_starts=STEPS)
    while loop.step < STEPS:
        loop.advance()
    return loop.learner


def bench_update(config: RunConfig, seconds: float) -> dict[str, Any]:
    """One update of an agent."""
    configure_threads(config.network_threads)
    every = 1
    if isinstance(config, TargetRunConfig):
        # The operations can be recorded in this process only, and plans are not measured.
        config = replace(config, learning=replace(config.learning, updater_process=False))
    if isinstance(config, SkipperConfig):
        config, every = as_variant(config, "skipper-goal"), config.generator.generator_every
    if isinstance(config, LeapConfig):  # measured is the second stage
        config = replace(config, learning=replace(config.learning, generator_steps=config.learning.batch_size))
    return {
        "machine": describe_machine(),
        "matmul_gflops": matmul_gflops(seconds),
        "agent": config.agent,
        "preset": config.preset,
        "threads": config.threads,
        **measure_update(learner_with_experience(config).learn, every, seconds),
    }
