"""How fast a gradient update is, and which share of the machine's matrix-multiplication speed it reaches."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from skipper.agents.base import Optimiser, observations_tensor
from skipper.agents.estimators import EstimatorNetwork, Hindsight, estimator_losses
from skipper.agents.modelfree import ModelFreeAgent
from skipper.benchmarks.machine import describe_machine
from skipper.config import RunConfig
from skipper.envs.spec import environment_spec
from skipper.envs.tasks import training_tasks
from skipper.envs.vector import LavaVectorEnv
from skipper.losses import total_loss, weighted_mean
from skipper.nets.layers import seeded_initialisation
from skipper.training.loop import Loop


def _time(work: Callable[[], Any], seconds: float) -> float:
    """Median seconds of one call, after a few that are not timed."""
    for _ in range(3):
        work()
    times: list[float] = []
    end = perf_counter() + seconds
    while perf_counter() < end or len(times) < 5:
        begin = perf_counter()
        work()
        times.append(perf_counter() - begin)
    return float(np.median(times))


def matmul_gflops(seconds: float) -> float:
    """The machine's speed on large single-precision matrix products, in GFLOP/s."""
    size = 1536
    with seeded_initialisation(0):
        one, two = torch.rand(size, size), torch.rand(size, size)
    return 2 * size**3 / _time(lambda: one @ two, seconds) / 1e9


def _measure(update: Callable[[], Any], ceiling: float, seconds: float) -> dict[str, float]:
    counter = FlopCounterMode(display=False)
    with counter:
        update()
    flops, duration = counter.get_total_flops(), _time(update, seconds)
    gflops = flops / duration / 1e9
    return {"ms": duration * 1e3, "gflop": flops / 1e9, "gflops": gflops, "share": gflops / ceiling}


def _filled_agent(config: RunConfig) -> ModelFreeAgent:
    """A model-free agent whose replay holds a few thousand random transitions."""
    agent = ModelFreeAgent(config, environment_spec(config.world))
    envs = LavaVectorEnv(config.environments, tasks=training_tasks(config.world, config.tasks, config.seed))
    loop = Loop(agent, envs, config.learning, config.seed)
    while loop.step < min(4_000, config.learning.learning_starts):
        loop.advance()
    return agent


def _estimator_update(config: RunConfig, agent: ModelFreeAgent) -> Callable[[], Any]:
    """One update of Skipper's value, reward, distance and terminal heads on their shared encoder."""
    spec = environment_spec(config.world)
    with seeded_initialisation(config.seed):
        network, frozen = EstimatorNetwork(config.network, spec), EstimatorNetwork(config.network, spec)
    optimiser = Optimiser(network, config.learning)
    rng = np.random.default_rng(0)

    def update() -> None:
        batch = agent.core.experience.replay.sample(config.learning.batch_size, config.replay.beta, rng)
        hindsight = Hindsight.of(batch, observations_tensor(rng.permutation(batch.next_observation)))
        losses = estimator_losses(network, frozen, hindsight, config.learning)
        total = total_loss(losses, dict.fromkeys(losses, 1.0))
        optimiser.step(weighted_mean(total, torch.from_numpy(batch.weight)))

    return update


def bench_update(config: RunConfig, seconds: float) -> dict[str, Any]:
    """Milliseconds, FLOP and the share of the ceiling of one update of each kind."""
    torch.set_num_threads(config.threads)
    ceiling = matmul_gflops(seconds)
    agent = _filled_agent(config)
    return {
        "machine": describe_machine(),
        "preset": config.preset,
        "threads": config.threads,
        "batch_size": config.learning.batch_size,
        "matmul_gflops": ceiling,
        "modelfree": _measure(agent.learn, ceiling, seconds),
        "skipper_heads": _measure(_estimator_update(config, agent), ceiling, seconds),
    }
