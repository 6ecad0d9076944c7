"""How right an agent's estimates, walks and plans are, by ground truth. The policy never knows that it is measured."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from skipper.agents.skipper.policy import SkipperActor, SkipperPolicy
from skipper.config import PlanningConfig
from skipper.envs.lava.oracle import UNREACHABLE, distances_from, reach_truth, reachable
from skipper.envs.lava.tasks import Tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.planning.proxy import CURRENT, Edges, EdgeStatus, ProxyProblem, merged_vertices, solve
from skipper.planning.value_iteration import TIE
from skipper.types import Array, Oracle, TimeStep, oracle_of, scene_of

FARTHEST = 16  # true distances from here on are reported together


def mean(values: Array) -> float | None:
    """The mean of those values that are numbers; None where there are none."""
    numbers = values[~np.isnan(values)]
    return float(numbers.mean()) if numbers.size else None


def by_distance(true: Array, **values: Array) -> dict[str, dict[str, Any]]:
    """Means of ``values`` for every true distance, "inf" for what cannot be reached, with the number of pairs."""
    binned = np.where(np.isinf(true), np.inf, np.minimum(true, FARTHEST))
    return {
        f"{steps:g}": {"pairs": int((binned == steps).sum())}
        | {name: mean(column[binned == steps]) for name, column in values.items()}
        for steps in np.unique(binned)
    }


def random_starts(tasks: Tasks, rows: Array, rng: np.random.Generator) -> Array:
    """(B,) a random reachable, non-terminal cell of each of the tasks ``rows`` (B,)."""
    place = (rng.random(len(rows)) * tasks.table.start_count[rows]).astype(np.int64)
    return tasks.table.starts[rows, place]


def estimate_truth(policy: SkipperPolicy, tasks: Tasks, rng: np.random.Generator, states: int = 24) -> dict[str, Any]:
    """Absolute errors of the edges from random reachable cells of every task to random free ones, by true distance.

    Cells that cannot be reached are among the latter. Distances are cut at the longest that the estimator knows, so
    that the error at "inf" is the L1 error of delusional edges.
    """
    rows = np.repeat(np.arange(len(tasks)), states)
    free = ~tasks.table.terminal & ~tasks.lava().reshape(len(tasks), -1)
    cells = np.concatenate([rng.choice(np.flatnonzero(row), states) for row in free])
    cells[states - 1 :: states] = tasks.table.goal
    seen = tasks.observe(rows, cells)
    problems = seen.reshape(len(tasks), states, *seen.shape[1:])
    sources = reachable(tasks)[rows, cells].reshape(len(tasks), states)
    sources[:, -1] = False  # nothing leads away from the goal
    vertices = merged_vertices(problems, np.zeros((len(tasks), states), np.int64))
    learned = policy.edges(vertices._replace(present=np.ones((len(tasks), states), bool)))
    true = Edges(*oracle_of(policy.spec).edges(problems, policy.config.learning.task_discount))
    longest = float(policy.config.network.bins)
    counted = (true.distance > 0) & sources[:, :, None]
    cut = np.minimum(true.distance, longest)
    return by_distance(
        true.distance[counted],
        distance=abs(np.minimum(learned.distance, longest) - cut)[counted],
        discount=abs(learned.discount - true.discount)[counted],
        reward=abs(learned.reward - true.reward)[counted],
    )


def walk_truth(policy: SkipperPolicy, tasks: Tasks, rng: np.random.Generator, targets: int = 4) -> dict[str, Any]:
    """Failures and detours of the checkpoint policy from every cell to random reachable ones, by true distance.

    Exact, also under slip. A walk fails when it does not come to its target within an episode's length; "detour" is
    the number of steps beyond the fewest possible, of walks that do.
    """
    cells = np.arange(tasks.world.cells)
    rows = np.repeat(np.arange(len(tasks)), targets)
    aims = random_starts(tasks, rows, rng)
    actions = np.stack(
        [
            policy.follow(
                tasks.observe(np.full(len(cells), row), cells),
                np.repeat(tasks.observe(np.array([row]), np.array([aim])), len(cells), axis=0),
            )
            for row, aim in zip(rows, aims, strict=True)
        ]
    )
    walks = reach_truth(tasks, rows, aims, actions)
    possible, distance = [], []
    for row, aim in zip(rows, aims, strict=True):
        starts = tasks.table.starts[row, : tasks.table.start_count[row]]
        steps = distances_from(tasks, np.full(len(starts), row), starts)[:, aim]
        possible.append(starts[(steps != UNREACHABLE) & (steps > 0)])
        distance.append(steps[(steps != UNREACHABLE) & (steps > 0)].astype(float))
    reached = np.concatenate([walks.reached[index, starts] for index, starts in enumerate(possible)])
    taken = np.concatenate([walks.steps[index, starts] for index, starts in enumerate(possible)])
    fewest = np.concatenate(distance)
    return by_distance(fewest, failure=1.0 - reached, detour=np.where(reached > 0, taken - fewest, np.nan))


def plan_truth(problem: ProxyProblem, oracle: Oracle, config: PlanningConfig, discount: float) -> dict[str, Array]:
    """What is wrong with each of B solved problems, (B,) each; not a number where the question does not arise.

    A vertex is delusional if it cannot be reached from the current state, an edge if there is no such way at all.
    "optimal" says that the chosen target would also be best among the kept vertices if all edges were true, which is
    asked where these lead to the goal at all.
    """
    true = Edges(*oracle.edges(problem.vertices.observation, discount))
    chosen, rows = problem.target, np.arange(len(problem.target))
    imagined = problem.kept.copy()
    imagined[:, [CURRENT, -1]] = False
    delusional = np.isinf(true.distance[:, CURRENT])
    edges = np.isinf(true.distance) & problem.kept[:, :, None] & problem.kept[:, None, :] & ~true.terminal[:, :, None]
    edges[:, :, CURRENT] = False  # nobody plans with them, and they need not be estimated
    error = np.where(edges, abs(config.max_distance - np.minimum(problem.edges.distance, config.max_distance)), 0.0)
    kept = problem.vertices._replace(present=problem.kept)
    ideal = solve(kept, lambda _: true, replace(config, oracle_parts=("edges",), prune_vertices=False))
    worth = np.where(ideal.status[:, CURRENT] == EdgeStatus.KEPT, ideal.values.action[:, CURRENT], -np.inf)
    with np.errstate(invalid="ignore"):
        return {
            "delusional_vertices": (imagined & delusional).sum(-1) / imagined.sum(-1),
            "delusional_target": np.where(chosen >= 0, delusional[rows, chosen], np.nan),
            "delusional_edge_error": error.sum((1, 2)) / edges.sum((1, 2)),
            "optimal_target": np.where(
                worth.max(-1) > 0, (chosen >= 0) & (worth[rows, chosen] >= worth.max(-1) - TIE), np.nan
            ),
            "no_target": (chosen < 0).astype(float),
        }


def plans_of(actor: SkipperActor, tasks: Tasks, seed: int) -> Iterator[ProxyProblem]:
    """All problems that are solved in one episode of every task."""
    envs = LavaVectorEnv(len(tasks), tasks=tasks, assignment="own")
    observation, info = envs.reset(seed=seed)
    first, running = np.ones(len(tasks), bool), np.ones(len(tasks), bool)
    while running.any():
        decision = actor.act(TimeStep(observation, info["goal"], first, idle=~running))
        if decision.plan is not None:
            yield decision.plan
        observation, _, terminated, truncated, info = envs.step(decision.action)
        first = terminated | truncated
        running &= ~first


@torch.no_grad()
def generator_truth(policy: SkipperPolicy, tasks: Tasks, rng: np.random.Generator, states: int = 8) -> dict[str, Any]:
    """Share of states whose agent is put back where it was; number of cells that codes name, and reachable share.

    A state is described and then put into the context of another state of its task; cells are named in the context of
    the task's start, and reachable from there.
    """
    generator, scene = policy.network.generator, scene_of(policy.spec)
    rows = np.repeat(np.arange(len(tasks)), states)
    described, context = (tasks.observe(rows, random_starts(tasks, rows, rng)) for _ in range(2))
    codes = generator.codes(torch.from_numpy(described))
    found = generator.imagine(torch.from_numpy(context), codes[:, None])[:, 0].argmax(-1).numpy()
    everything = torch.arange(2**generator.bits).expand(len(tasks), -1)
    starts = tasks.observe(np.arange(len(tasks)), tasks.table.start)
    cells = generator.imagine(torch.from_numpy(starts), everything).argmax(-1).numpy()  # (N, codes)
    named = np.zeros((len(tasks), tasks.world.cells), bool)
    np.put_along_axis(named, cells, True, axis=1)
    reachable = oracle_of(policy.spec).reachable(starts)
    return {
        "reconstruction": float((found == scene.agent_cell(described)).mean()),
        "distinct_cells": float(named.sum(-1).mean()),
        "reachable_share": float((named & reachable).sum() / named.sum()),
    }


def measure_truth(actor: SkipperActor, tasks: Tasks, seed: int) -> dict[str, Any]:
    """Everything above, with all plans of one episode of every task; some of the tasks where that is enough."""
    policy, rng = actor.policy, np.random.default_rng(seed)
    some = tasks.subset(np.arange(min(len(tasks), 16)))
    discount = policy.config.learning.task_discount
    oracle = oracle_of(policy.spec)
    plans = [plan_truth(problem, oracle, policy.config.planning, discount) for problem in plans_of(actor, tasks, seed)]
    joined = {name: np.concatenate([plan[name] for plan in plans]) for name in plans[0]} if plans else {}
    return {
        "edges": estimate_truth(policy, some, rng),
        "walks": walk_truth(policy, some, rng),
        "plans": {"plans": sum(len(plan["no_target"]) for plan in plans)}
        | {name: mean(column) for name, column in joined.items()},
        "generator": generator_truth(policy, some, rng),
    }
