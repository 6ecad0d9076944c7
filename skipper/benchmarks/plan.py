"""Time to plan: to imagine, annotate and solve proxy problems, or to search for subgoals.

As in an episode: several plans in one scene, the agent moving between them, and then a new scene. The agent is a
trained one, or an untrained one whose imagined states are all distinct, as those of a trained generator mostly are.
Its estimates make all edges too long, so that it needs no rewards, and its descriptions cost no time; that of
describing states is measured separately.
"""

from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from skipper.agents.leap.config import LeapConfig
from skipper.agents.leap.policy import LeapActor, LeapPolicy
from skipper.agents.skipper.config import SkipperConfig
from skipper.agents.skipper.policy import SkipperActor, SkipperPolicy
from skipper.benchmarks.timing import median_seconds
from skipper.benchmarks.update import matmul_gflops
from skipper.config import RunConfig
from skipper.envs.registry import find_family
from skipper.nets.estimators import LeapNetwork, SkipperNetwork
from skipper.nets.frozen import FrozenNetwork
from skipper.nets.layers import observations_tensor, seeded_initialisation
from skipper.planning.proxy import solve
from skipper.runtime.machine import describe_machine
from skipper.runtime.threads import configure_threads
from skipper.training.load import load
from skipper.types import Array, Edges, LazyEdges, Vertices

BATCHES = (1, 64)
CELLS = 58  # distinct cells that the codes of a trained generator give in a scene
PLANS = {"trigger": 6, "step": 20}  # of an episode; trained agents need about 20 steps
SCENES = 2048  # more than fit into the cache of partial states


class Rehearsal(FrozenNetwork):
    """Imagines, and then returns other cells of the scene than an untrained generator gives: hardly any are equal."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._rng = np.random.default_rng(0)

    def describe(self, states: Array) -> Array:
        """Distinct descriptions, which cost no time."""
        return -1 - np.arange(len(states))

    def imagine(self, observation: Array, codes: Array, environments: Array | None = None) -> Array:
        """Random cells."""
        super().imagine(observation, codes, environments)
        width, height, _ = observation.shape[1:]
        count = codes.shape[1]
        cells = np.arange(max(count, CELLS)) % min(CELLS, width * height)
        return self._rng.permuted(np.tile(cells, (len(observation), 1)), axis=1)[:, :count]


def bench_plan(policy: SkipperPolicy | LeapPolicy, seconds: float) -> dict[str, Any]:
    """Milliseconds per plan, alone and in a batch of 64, in total and by phase."""
    config = policy.config
    configure_threads(config.threads)
    result: dict[str, Any] = {
        "machine": describe_machine(),
        "matmul_gflops": matmul_gflops(seconds),  # low where the machine is busy
        "agent": config.agent,
        "preset": config.preset,
        "threads": config.threads,
    }
    if isinstance(policy, SkipperPolicy):
        planning = policy.config.planning
        plans, count, phases = PLANS[planning.replan], planning.checkpoints + 2, _phases(policy)
        result |= {"vertices": count, "kept": planning.max_vertices if planning.prune_vertices else count}
    else:
        plans, phases = 1, _phases_of_search(policy)
        result |= {"codes": 2**config.generator.description_bits, "sequences": policy.config.planning.samples}
    result["plans_per_scene"] = plans
    for batch in BATCHES:
        walks = _walks(policy, batch, plans)
        for name, work in phases.items():
            result[f"ms_batch{batch}{name}"] = median_seconds(_episode(work, walks), seconds) / batch / plans * 1e3
    return result


def untrained(config: RunConfig) -> SkipperPolicy | LeapPolicy:
    """The policy of an untrained network, as it would be evaluated."""
    spec, rng = find_family(config.env).spec(config.world), np.random.default_rng(config.seed)
    with seeded_initialisation(config.seed):
        if isinstance(config, LeapConfig):
            return LeapPolicy(Rehearsal(LeapNetwork(config, spec), config, spec), config, spec, rng)
        if isinstance(config, SkipperConfig):
            network = SkipperNetwork(config, spec)
            return SkipperPolicy(Rehearsal(network, config, spec, plans=config.planning), config, spec, rng)
    raise ValueError(f"{config.agent!r} does not plan")


def trained(run: Path) -> SkipperPolicy | LeapPolicy:
    """The policy of a run folder's agent, which must be one that plans."""
    agent = load(run).agent
    if isinstance(agent, LeapActor):
        return agent.policy
    if not isinstance(agent, SkipperActor) or agent.policy.config.planning.always_goal:
        raise ValueError(f"the agent of {run} does not plan")
    return agent.policy


def _walks(policy: SkipperPolicy | LeapPolicy, batch: int, plans: int) -> Iterator[list[tuple[Array, Array]]]:
    """Observations and goals at each plan of an episode in ``batch`` scenes at once; other scenes every time."""
    config, family = policy.config, find_family(policy.config.env)
    tasks = family.training_evaluation(config.world, None, SCENES, seed=0)
    truth, rows = family.truth(tasks), np.arange(SCENES).reshape(-1, batch)
    if truth is None:
        raise ValueError(f"the benchmark needs ground truth, which the environment {config.env!r} does not offer")
    reachable = [truth.reachable(row) for row in range(SCENES)]

    def walk(some: Array) -> list[tuple[Array, Array]]:
        goal = truth.observe(some, truth.goals()[some])
        states = (np.array([reachable[row][plan % len(reachable[row])] for row in some]) for plan in range(plans))
        return [(truth.observe(some, here), goal) for here in states]

    return cycle([walk(some) for some in rows])


def _episode(work: Callable[[Array, Array], Any], walks: Iterator[list[tuple[Array, Array]]]) -> Callable[[], None]:
    def episode() -> None:
        for moment in next(walks):
            work(*moment)

    return episode


def _phases(policy: SkipperPolicy) -> dict[str, Callable[[Array, Array], Any]]:
    """What to measure of Skipper, from observations and goals (B, W, H, C)."""

    def propose(now: Array, goal: Array) -> Vertices:
        return policy.vertex_source.propose(now, goal, environments=np.arange(len(now)))

    def annotate(now: Array, goal: Array) -> LazyEdges:
        """Everything before a problem is solved."""
        return policy.frozen.edges(propose(now, goal), np.arange(len(now)))

    solved: dict[int, tuple[Vertices, Edges]] = {}

    def solve_again(now: Array, goal: Array) -> None:
        """Only the solution, always of the same problems."""
        if len(now) not in solved:
            vertices = propose(now, goal)
            solved[len(now)] = vertices, policy.edges(vertices)
        solve(*solved[len(now)], policy.config.planning)

    return {
        "": policy.plan,
        "_describe": lambda now, _: policy.network.generator.codes(observations_tensor(now)),
        "_vertices": propose,
        "_vertices_and_edges": annotate,
        "_solve": solve_again,
    }


def _phases_of_search(policy: LeapPolicy) -> dict[str, Callable[[Array, Array], Any]]:
    """What to measure of LEAP."""
    source = policy.subgoal_source
    return {
        "": policy.plan,
        "_states": source.imagine_all,
        "_states_and_distances": lambda now, goal: source.distances(source.imagine_all(now, goal)),
    }
