"""Time to imagine, annotate and solve proxy problems.

As in an episode: several plans in one scene, the agent moving between them, and then a new scene. The agent is a
trained one, or an untrained one whose imagined states are all distinct, as those of a trained generator mostly are.
Its estimates make all edges too long, so that it needs no rewards, and its descriptions cost no time; that of
describing states is measured separately.
"""

from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from skipper.agents.skipper.config import SkipperConfig
from skipper.agents.skipper.policy import SkipperActor, SkipperPolicy
from skipper.benchmarks.machine import describe_machine
from skipper.benchmarks.timing import median_seconds
from skipper.benchmarks.update import matmul_gflops
from skipper.config import RunConfig
from skipper.envs.registry import find_family
from skipper.nets.estimators import SkipperNetwork
from skipper.nets.frozen import FrozenNetwork
from skipper.nets.layers import observations_tensor, seeded_initialisation
from skipper.planning.proxy import solve
from skipper.runtime.threads import configure_threads
from skipper.training.load import load
from skipper.types import Array, EnvironmentSpec, Vertices

BATCHES = (1, 64)
CELLS = 58  # distinct cells that the codes of a trained generator give in a scene
PLANS = {"trigger": 6, "step": 20}  # of an episode; trained agents need about 20 steps
SCENES = 2048  # more than fit into the cache of partial states


class Rehearsal(FrozenNetwork):
    """Imagines, and then returns distinct cells of the scene in place of those that an untrained generator gives."""

    def __init__(self, network: SkipperNetwork, config: SkipperConfig, spec: EnvironmentSpec) -> None:
        super().__init__(network, config, spec, edge_cache=True)
        self._rng = np.random.default_rng(config.seed)

    def describe(self, states: Array) -> Array:
        """Distinct descriptions, which cost no time."""
        return -1 - np.arange(len(states))

    def imagine(self, observation: Array, codes: Array, environments: Array | None = None) -> Array:
        """Random cells, distinct in each row."""
        super().imagine(observation, codes, environments)
        width, height, _ = observation.shape[1:]
        cells = np.tile(np.arange(CELLS) % (width * height), (len(observation), 1))
        return self._rng.permuted(cells, axis=1)[:, : codes.shape[1]]


def bench_plan(policy: SkipperPolicy, seconds: float) -> dict[str, Any]:
    """Milliseconds per problem, alone and in a batch of 64, in total and by phase."""
    config = policy.config
    configure_threads(config.threads)
    plans = PLANS[config.planning.replan]
    result: dict[str, Any] = {
        "machine": describe_machine(),
        "matmul_gflops": matmul_gflops(seconds),  # low where the machine is busy
        "preset": config.preset,
        "threads": config.threads,
        "vertices": config.planning.checkpoints + 2,
        "kept": config.planning.max_vertices if config.planning.prune_vertices else config.planning.checkpoints + 2,
        "plans_per_scene": plans,
    }
    for batch in BATCHES:
        for name, work in _works(policy, batch, plans).items():
            result[f"ms_batch{batch}{name}"] = median_seconds(work, seconds) / batch / plans * 1e3
    return result


def untrained(config: RunConfig) -> SkipperPolicy:
    """The policy of an untrained network, as it would be evaluated."""
    if not isinstance(config, SkipperConfig):
        raise ValueError(f"{config.agent!r} does not plan")
    spec = find_family(config.env).spec(config.world)
    with seeded_initialisation(config.seed):
        network = SkipperNetwork(config, spec)
    frozen = Rehearsal(network, config, spec)
    return SkipperPolicy(frozen, config, spec, np.random.default_rng(config.seed))


def trained(run: Path) -> SkipperPolicy:
    """The policy of a run folder's agent, which must be one that plans."""
    agent = load(run).agent
    if not isinstance(agent, SkipperActor) or agent.policy.config.planning.always_goal:
        raise ValueError(f"the agent of {run} does not plan")
    return agent.policy


def _works(policy: SkipperPolicy, batch: int, plans: int) -> dict[str, Callable[[], Any]]:
    """The plans of an episode in ``batch`` scenes at once, in total and by phase; another episode at every call."""
    config, family = policy.config, find_family(policy.config.env)
    tasks = family.training_evaluation(config.world, None, SCENES, seed=0)
    truth, rows, environments = family.truth(tasks), np.arange(SCENES).reshape(-1, batch), np.arange(batch)
    if truth is None:
        raise ValueError(f"the benchmark needs ground truth, which the environment {config.env!r} does not offer")
    reachable = [truth.reachable(row) for row in range(SCENES)]

    def walk(some: Array) -> list[tuple[Array, Array]]:
        """Observations and goals at each plan."""
        goal = truth.observe(some, truth.goals()[some])
        states = (np.array([reachable[row][plan % len(reachable[row])] for row in some]) for plan in range(plans))
        return [(truth.observe(some, here), goal) for here in states]

    walks = cycle([walk(some) for some in rows])

    def repeat(work: Callable[[Array, Array], Any]) -> Callable[[], None]:
        def episode() -> None:
            for moment in next(walks):
                work(*moment)

        return episode

    def propose(now: Array, goal: Array) -> Vertices:
        return policy.vertex_source.propose(now, goal, environments=environments)

    def annotate(now: Array, goal: Array) -> None:
        """Everything before a problem is solved."""
        policy.frozen.edges(propose(now, goal), environments)

    vertices = propose(*next(walks)[0])
    edges = policy.edges(vertices)
    return {
        "": repeat(policy.plan),
        "_describe": repeat(lambda now, _: policy.network.generator.codes(observations_tensor(now))),
        "_vertices": repeat(propose),
        "_vertices_and_edges": repeat(annotate),
        "_solve": repeat(lambda *_: solve(vertices, edges, policy.config.planning)),
    }
