"""How fast proxy problems are imagined, annotated and solved.

As in an episode: several plans in the same scene before the next one, and imagined states that are all different, as
those of a trained generator mostly are. The descriptions of current state and goal are measured apart: an agent knows
them before it plans, since it compares them with its checkpoints at every step.
"""

from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np

from skipper.agents.base import observations_tensor
from skipper.agents.checkpoints import Memory, SkipperNetwork
from skipper.agents.skipper import SkipperPolicy
from skipper.benchmarks.machine import describe_machine
from skipper.benchmarks.timing import median_seconds
from skipper.benchmarks.update import matmul_gflops
from skipper.config import RunConfig
from skipper.envs.spec import environment_spec
from skipper.envs.tasks import evaluation_tasks
from skipper.nets.layers import seeded_initialisation
from skipper.planning.proxy import Vertices, solve
from skipper.training.processor import prepare_processor
from skipper.types import Array, scene_of

BATCHES = (1, 64)
CELLS = 58  # that the codes of a trained generator name in a scene
PLANS = 6  # of an episode
EPISODES = 32


class Rehearsal(SkipperPolicy):
    """Imagines, and then puts different cells of the scene in place of what an untrained generator imagined."""

    def imagine(self, observation: Array, goal: Array, checkpoints: int | None = None) -> Vertices:
        """Vertices at random cells."""
        vertices = super().imagine(observation, goal, checkpoints)
        count = vertices.present.shape[1] - 2
        cells = np.tile(np.arange(CELLS) % self.config.world.cells, (len(observation), 1))
        placed = scene_of(self.spec).place_agent(observation, self.rng.permuted(cells, axis=1)[:, :count])
        states = np.concatenate([observation[:, None], placed, goal[:, None]], axis=1)
        return Vertices(states, vertices.code, np.ones_like(vertices.present))


def bench_plan(config: RunConfig, seconds: float) -> dict[str, Any]:
    """Milliseconds per problem, alone and in a batch of 64, and what they are spent on."""
    prepare_processor(config.threads)
    spec = environment_spec(config.world)
    with seeded_initialisation(config.seed):
        network = SkipperNetwork(config, spec)
    memory = Memory(network, config.network.partial_width)  # as in evaluation
    policy = Rehearsal(network, config, spec, np.random.default_rng(config.seed), memory=memory)
    result: dict[str, Any] = {
        "machine": describe_machine(),
        "matmul_gflops": matmul_gflops(seconds),  # busy neighbours on the machine show here
        "preset": config.preset,
        "threads": config.threads,
        "vertices": config.planning.checkpoints + 2,
        "kept": config.planning.kept,
        "plans_per_scene": PLANS,
    }
    for batch in BATCHES:
        for name, work in _works(policy, batch).items():
            result[f"ms_batch{batch}{name}"] = median_seconds(work, seconds) / batch / PLANS * 1e3
    return result


def _works(policy: SkipperPolicy, batch: int) -> dict[str, Callable[[], Any]]:
    """The plans of an episode in ``batch`` scenes at once, whole and in parts; another episode at every call."""
    world = policy.config.world
    tasks = evaluation_tasks(world, world.difficulty, batch * EPISODES, seed=0)
    rows = np.arange(len(tasks)).reshape(EPISODES, batch)
    scenes = cycle(
        [(tasks.observe(some, tasks.table.start[some]), tasks.observe(some, tasks.table.goal[some])) for some in rows]
    )

    def repeat(work: Callable[[Array, Array], Any]) -> Callable[[], None]:
        def episode() -> None:
            ends = next(scenes)
            for _ in range(PLANS):
                work(*ends)

        return episode

    ends = next(scenes)
    edges = policy.edges(policy.imagine(*ends))
    vertices = policy.imagine(*ends)
    return {
        "": repeat(policy.plan),
        "_describe": repeat(lambda now, _: policy.network.generator.codes(observations_tensor(now))),
        "_vertices": repeat(policy.imagine),
        "_vertices_and_edges": repeat(lambda now, goal: policy.estimate(policy.imagine(now, goal))),
        "_solve": repeat(lambda *_: solve(vertices, lambda _: edges, policy.config.planning)),
    }
