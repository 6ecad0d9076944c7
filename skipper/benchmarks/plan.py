"""How fast proxy problems are imagined, annotated and solved."""

from collections.abc import Callable
from typing import Any

import numpy as np

from skipper.agents.checkpoints import SkipperNetwork
from skipper.agents.skipper import SkipperPolicy
from skipper.benchmarks.machine import describe_machine
from skipper.benchmarks.timing import median_seconds
from skipper.config import RunConfig
from skipper.envs.spec import environment_spec
from skipper.envs.tasks import evaluation_tasks
from skipper.nets.layers import seeded_initialisation
from skipper.planning.proxy import solve
from skipper.training.processor import prepare_processor
from skipper.types import Array

BATCHES = (1, 64)


def bench_plan(config: RunConfig, seconds: float) -> dict[str, Any]:
    """Milliseconds per problem, alone and in a batch of 64, and what they are spent on."""
    prepare_processor(config.threads)
    spec = environment_spec(config.world)
    with seeded_initialisation(config.seed):
        network = SkipperNetwork(config, spec)
    policy = SkipperPolicy(network, config, spec, np.random.default_rng(config.seed))
    result: dict[str, Any] = {
        "machine": describe_machine(),
        "preset": config.preset,
        "threads": config.threads,
        "vertices": config.planning.checkpoints + 2,
        "kept": config.planning.kept,
    }
    for batch in BATCHES:
        tasks = evaluation_tasks(config.world, config.world.difficulty, batch, seed=0)
        rows = np.arange(batch)
        ends = tasks.observe(rows, tasks.table.start), tasks.observe(rows, tasks.table.goal)
        for name, work in _works(policy, ends).items():
            result[f"ms_batch{batch}{name}"] = median_seconds(work, seconds) / batch * 1e3
    return result


def _works(policy: SkipperPolicy, ends: tuple[Array, Array]) -> dict[str, Callable[[], Any]]:
    """Planning from current states to goals ``ends``, whole and in parts."""
    vertices = policy.imagine(*ends)
    edges = policy.edges(vertices)
    return {
        "": lambda: policy.plan(*ends),
        "_vertices": lambda: policy.imagine(*ends),
        "_edges": lambda: policy.estimate(vertices),
        "_solve": lambda: solve(vertices, lambda _: edges, policy.config.planning),
    }
