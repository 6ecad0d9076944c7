"""How fast a gradient update is, and which share of the machine's matrix-multiplication speed it reaches."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from skipper.agents.registry import learner_kind
from skipper.benchmarks.machine import describe_machine
from skipper.benchmarks.timing import median_seconds
from skipper.config import RunConfig
from skipper.envs.spec import environment_spec
from skipper.envs.tasks import training_tasks
from skipper.envs.vector import LavaVectorEnv
from skipper.nets.layers import seeded_initialisation
from skipper.presets import preset
from skipper.training.loop import Loop
from skipper.types import Learner

STEPS = 4_000  # of random experience that updates are measured on


def ceiling_gflops(seconds: float) -> float:
    """The machine's speed on large single-precision matrix products, in GFLOP/s."""
    size = 1536
    with seeded_initialisation(0):
        one, two = torch.rand(size, size), torch.rand(size, size)
    return 2 * size**3 / median_seconds(lambda: one @ two, seconds) / 1e9


def measure_update(update: Callable[[], Any], ceiling: float, seconds: float) -> dict[str, float]:
    """Milliseconds, FLOP, and the share of the ceiling."""
    counter = FlopCounterMode(display=False)
    with counter:
        update()
    flops, duration = counter.get_total_flops(), median_seconds(update, seconds)
    gflops = flops / duration / 1e9
    return {"ms": duration * 1e3, "gflop": flops / 1e9, "gflops": gflops, "share": gflops / ceiling}


def learner_with_experience(config: RunConfig) -> Learner:
    """A learner whose replay holds a few thousand transitions of its first, random, steps."""
    learner = learner_kind(config.agent).train(config, environment_spec(config.world))
    envs = LavaVectorEnv(config.environments, tasks=training_tasks(config.world, config.tasks, config.seed))
    loop = Loop(learner, envs, replace(config.learning, learning_starts=STEPS), config.seed)
    while loop.step < STEPS:
        loop.advance()
    return learner


def bench_update(name: str, seconds: float) -> dict[str, Any]:
    """One update of Skipper at the preset ``name``, and beside it one of the model-free baseline."""
    config = preset(name, "skipper-goal")  # learns like all variants, and gathers its experience without planning
    torch.set_num_threads(config.threads)
    ceiling = ceiling_gflops(seconds)
    modelfree = learner_with_experience(preset(name, "modelfree"))
    return {
        "machine": describe_machine(),
        "preset": config.preset,
        "threads": config.threads,
        "batch_size": config.learning.batch_size,
        "ceiling_gflops": ceiling,
        **measure_update(learner_with_experience(config).learn, ceiling, seconds),
        "modelfree": measure_update(modelfree.learn, ceiling, seconds),
    }
