"""How fast proxy problems are imagined, annotated and solved.

As in an episode: several plans in the same scene, the agent moving on between them, and then a scene that is new to it.
Either a trained agent makes them, or an untrained one whose imagined states are all different, as those of a trained
generator mostly are; it finds all ways too long, which saves it their rewards, and knows descriptions of states without
computing them. How long that takes is measured apart.
"""

from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from skipper.agents.learning_core import observations_tensor
from skipper.agents.skipper.policy import SkipperActor, SkipperPolicy
from skipper.agents.skipper.vertices import Memory, SkipperNetwork
from skipper.benchmarks.machine import describe_machine
from skipper.benchmarks.timing import median_seconds
from skipper.benchmarks.update import matmul_gflops
from skipper.config import RunConfig
from skipper.envs.registry import find_family
from skipper.nets.layers import seeded_initialisation
from skipper.planning.proxy import solve
from skipper.runtime.threads import configure_threads
from skipper.training.load import load
from skipper.types import Array

BATCHES = (1, 64)
CELLS = 58  # that the codes of a trained generator name in a scene
PLANS = {"once": 6, "trigger": 6, "step": 20}  # of an episode, by when they are made; trained agents need 20 steps
SCENES = 2048  # more than agents remember the states of


class Rehearsal(SkipperPolicy):
    """Imagines, and then puts different cells of the scene in place of what an untrained generator imagined."""

    def describe(self, states: Array) -> Array:
        """Descriptions that are known already."""
        return -1 - np.arange(len(states))  # all different

    def imagined_cells(self, rows: Array, observation: Array, codes: Array) -> Array:
        """Random cells, all different."""
        super().imagined_cells(rows, observation, codes)
        cells = np.tile(np.arange(CELLS) % int(np.prod(self.spec.shape[:2])), (len(observation), 1))
        return self.rng.permuted(cells, axis=1)[:, : codes.shape[1]]


def bench_plan(policy: SkipperPolicy, seconds: float) -> dict[str, Any]:
    """Milliseconds per problem, alone and in a batch of 64, and what they are spent on."""
    config = policy.config
    configure_threads(config.threads)
    plans = PLANS[config.planning.regenerate]
    result: dict[str, Any] = {
        "machine": describe_machine(),
        "matmul_gflops": matmul_gflops(seconds),  # busy neighbours on the machine show here
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
    """The policy of a network that has learned nothing, as it would be evaluated."""
    spec = find_family(config.env).spec(config.world)
    with seeded_initialisation(config.seed):
        network = SkipperNetwork(config, spec)
    memory = Memory(network, config.network.partial_width)
    return Rehearsal(network, config, spec, np.random.default_rng(config.seed), memory=memory, edge_cache=True)


def trained(run: Path) -> SkipperPolicy:
    """The policy of a run folder's agent, which must be one that plans."""
    agent = load(run).agent
    if not isinstance(agent, SkipperActor) or agent.policy.config.planning.always_goal:
        raise ValueError(f"the agent of {run} does not plan")
    return agent.policy


def _works(policy: SkipperPolicy, batch: int, plans: int) -> dict[str, Callable[[], Any]]:
    """The plans of an episode in ``batch`` scenes at once, whole and in parts; another episode at every call."""
    family, world = find_family(policy.config.env), policy.config.world
    truth = family.truth(family.training_evaluation(world, None, SCENES, seed=0))
    if truth is None:
        raise ValueError(f"the environment {family.name!r} offers no ground truth to draw states from")
    rows, goals = np.arange(SCENES).reshape(-1, batch), truth.goals()

    def walk(some: Array) -> list[tuple[Array, Array]]:
        """Where the agents are at each plan, and their goals."""
        goal, starts = truth.observe(some, goals[some]), [truth.reachable(row) for row in some]
        places = (np.array([states[plan % len(states)] for states in starts]) for plan in range(plans))
        return [(truth.observe(some, states), goal) for states in places]

    walks = cycle([walk(some) for some in rows])

    def repeat(work: Callable[[Array, Array], Any]) -> Callable[[], None]:
        def episode() -> None:
            for moment in next(walks):
                work(*moment)

        return episode

    def annotate(now: Array, goal: Array) -> None:
        """Everything that comes before a problem is solved."""
        policy.open_edge_cache(np.arange(batch), now)
        policy.estimate(policy.imagine(now, goal))

    vertices = policy.imagine(*next(walks)[0])
    edges = policy.edges(vertices)
    return {
        "": repeat(policy.plan),
        "_describe": repeat(lambda now, _: policy.network.generator.codes(observations_tensor(now))),
        "_vertices": repeat(policy.imagine),
        "_vertices_and_edges": repeat(annotate),
        "_solve": repeat(lambda *_: solve(vertices, lambda _: edges, policy.config.planning)),
    }
