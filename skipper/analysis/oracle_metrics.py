"""Errors of a trained agent's estimates, walks, plans and generator, measured against ground truth."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from skipper.agents.leap.policy import LeapActor, LeapPolicy
from skipper.agents.leap.subgoals import Chains
from skipper.agents.skipper.config import SkipperConfig
from skipper.agents.skipper.policy import SkipperActor, SkipperPolicy
from skipper.agents.skipper.vertices import merge_vertices
from skipper.config import PlanningConfig
from skipper.envs.registry import Family, TaskSet, TaskTruth
from skipper.planning.proxy import ProxyProblem, solve
from skipper.planning.prune import EdgeStatus
from skipper.planning.value_iteration import TIE
from skipper.training.evaluate import rollout
from skipper.types import CURRENT, Array, Edges, Oracle, oracle_of, placement_of, scene_of

FARTHEST = 16  # true distances of at least this many steps are reported together
TASKS = 16  # tasks that edges, walks and the generator are measured on


PlanningPolicy = SkipperPolicy | LeapPolicy
PLANNING_ACTORS = (SkipperActor, LeapActor)  # agents that can be measured


def mean(values: Array) -> float | None:
    """The mean of all values that are not NaN; None where there are none."""
    numbers = values[~np.isnan(values)]
    return float(numbers.mean()) if numbers.size else None


def by_distance(true: Array, **values: Array) -> dict[str, dict[str, Any]]:
    """Means of ``values`` and the number of pairs for every true distance, "inf" for unreachable targets."""
    binned = np.where(np.isinf(true), np.inf, np.minimum(true, FARTHEST))
    return {
        f"{steps:g}": {"pairs": int((binned == steps).sum())}
        | {name: mean(column[binned == steps]) for name, column in values.items()}
        for steps in np.unique(binned)
    }


def random_starts(truth: TaskTruth, rows: Array, rng: np.random.Generator) -> Array:
    """(B,) a random reachable, non-terminal state of each of the tasks ``rows`` (B,)."""
    reachable = [truth.reachable(row) for row in rows.tolist()]
    index = (rng.random(len(rows)) * [len(states) for states in reachable]).astype(np.int64)
    return np.array([states[chosen] for states, chosen in zip(reachable, index, strict=True)])


def estimate_truth(
    policy: PlanningPolicy, truth: TaskTruth, rng: np.random.Generator, states: int = 24
) -> dict[str, Any]:
    """Absolute errors of the edges from random reachable states of every task to random free ones, by true distance.

    Targets include unreachable states. Learned and true distances are truncated at the largest that the estimator can
    express, as in the paper's figure of delusional edges, and discounts at the discount of that distance: certainty
    that a target is farther away than that, or out of reach, is no error. Where moves slip, true discounts count walks
    that fail as 0; the estimator can express that with distance_distributions, and discounts are then not truncated.
    """
    # Draw states; the last of every task is its goal.
    count = len(truth.starts())
    rows = np.repeat(np.arange(count), states)
    drawn = np.concatenate([rng.choice(np.flatnonzero(row), states) for row in truth.free()])
    drawn[states - 1 :: states] = truth.goals()
    seen = truth.observe(rows, drawn)
    problems = seen.reshape(count, states, *seen.shape[1:])
    # Learned and true edges between all of them.
    vertices = merge_vertices(problems, np.zeros((count, states), np.int64), policy.spec.state_key(problems))
    learned = policy.edges(vertices._replace(present=np.ones((count, states), bool)))
    true = Edges(*oracle_of(policy.spec).edges(problems, policy.config.learning.task_discount))
    # Count edges from reachable states other than the goal, which has none.
    reachable = np.isfinite(truth.distances(np.arange(count), truth.starts()))
    sources = reachable[rows, drawn].reshape(count, states)
    sources[:, -1] = False
    counted = (true.distance > 0) & sources[:, :, None]
    # Truncate, and compare.
    farthest, least = float(policy.config.network.bins), float(policy.network.heads().discounts[-1])
    distances = (np.minimum(edges.distance, farthest) for edges in (learned, true))
    discounts = (np.maximum(edges.discount, least) for edges in (learned, true))
    return by_distance(
        true.distance[counted],
        distance=abs(np.subtract(*distances))[counted],
        discount=abs(np.subtract(*discounts))[counted],
        reward=abs(learned.reward - true.reward)[counted],
    )


def walk_truth(policy: PlanningPolicy, truth: TaskTruth, rng: np.random.Generator, targets: int = 4) -> dict[str, Any]:
    """Failures and detours of the checkpoint policy from every state to random reachable ones, by true distance.

    Exact, also where actions have random effects. A walk fails if it does not reach its target within an episode's
    length; "detour" is the number of steps beyond the minimum, over walks that succeed.
    """
    # Greedy actions towards every target in every state.
    everywhere = np.arange(truth.states)
    rows = np.repeat(np.arange(len(truth.starts())), targets)
    aims = random_starts(truth, rows, rng)
    actions = np.stack(
        [
            policy.follow(
                truth.observe(np.full(truth.states, row), everywhere),
                np.repeat(truth.observe(np.array([row]), np.array([aim])), truth.states, axis=0),
            )
            for row, aim in zip(rows, aims, strict=True)
        ]
    )
    reached, steps = truth.walks(rows, aims, actions)
    # Compare with the shortest paths from all reachable states.
    success, taken, fewest = [], [], []
    for index, (row, aim) in enumerate(zip(rows.tolist(), aims.tolist(), strict=True)):
        starts = truth.reachable(row)
        distance = truth.distances(np.full(len(starts), row), starts)[:, aim]
        counted = np.isfinite(distance) & (distance > 0)
        success.append(reached[index, starts[counted]])
        taken.append(steps[index, starts[counted]])
        fewest.append(distance[counted])
    rate, detour = np.concatenate(success), np.concatenate(taken) - np.concatenate(fewest)
    return by_distance(np.concatenate(fewest), failure=1.0 - rate, detour=np.where(rate > 0, detour, np.nan))


def plan_truth(problem: ProxyProblem, oracle: Oracle, config: PlanningConfig, discount: float) -> dict[str, Array]:
    """What is wrong with each of B solved problems, (B,) each; NaN where a question does not apply.

    A vertex is delusional if it cannot be reached from the current state, an edge if it has no path at all. Errors of
    truncated distances, as estimated before backups, are means over delusional edges: all of them, those from
    delusional vertices, and those to delusional vertices (paper, Fig. "once_50_envs_suppress"); edges between two
    delusional vertices count in both. The target is optimal if it is also the best one among the kept vertices when all
    edges are true; this applies where true edges lead to the goal.
    """
    true = Edges(*oracle.edges(problem.vertices.observation, discount))
    chosen, rows = problem.target, np.arange(len(problem.target))
    imagined = problem.kept.copy()
    imagined[:, [CURRENT, -1]] = False
    delusional = np.isinf(true.distance[:, CURRENT])
    edges = np.isinf(true.distance) & problem.kept[:, :, None] & problem.kept[:, None, :] & ~true.terminal[:, :, None]
    edges[:, :, CURRENT] = False  # plans do not use them, and they need not be estimated
    error = config.max_distance - np.minimum(problem.estimated, config.max_distance)

    def mean_error(which: Array) -> Array:  # (B, N, N) bool to (B,)
        total: Array = np.where(which, error, 0.0).sum((1, 2))
        return total / which.sum((1, 2))

    # Solve the same problem with true edges.
    kept = problem.vertices._replace(present=problem.kept)
    ideal = solve(kept, true, replace(config, oracle_parts=("edges",), prune_vertices=False))
    worth = np.where(ideal.status[:, CURRENT] == EdgeStatus.KEPT, ideal.values.action[:, CURRENT], -np.inf)
    with np.errstate(invalid="ignore"):
        return {
            "delusional_vertices": (imagined & delusional).sum(-1) / imagined.sum(-1),
            "delusional_target": np.where(chosen >= 0, delusional[rows, chosen], np.nan),
            "delusional_edge_error": mean_error(edges),
            "edge_error_from_delusional": mean_error(edges & delusional[:, :, None]),
            "edge_error_to_delusional": mean_error(edges & delusional[:, None, :]),
            "optimal_target": np.where(
                worth.max(-1) > 0, (chosen >= 0) & (worth[rows, chosen] >= worth.max(-1) - TIE), np.nan
            ),
            "no_target": (chosen < 0).astype(float),
        }


def chain_truth(chains: Chains, oracle: Oracle, discount: float, farthest: float) -> dict[str, Array]:
    """As ``plan_truth``, for chains of subgoals: their segments are the edges.

    Subgoals and edges count when they were found, targets whenever they were chosen.
    """
    true = Edges(*oracle.edges(chains.state, discount))
    first, rows = np.arange(chains.distance.shape[1]), np.arange(len(chains.state))
    delusional, found = np.isinf(true.distance[:, CURRENT]), chains.found[:, None]  # (B, M + 2), (B, 1)
    edges = found & np.isinf(true.distance[:, first, first + 1]) & ~true.terminal[:, :-1]  # (B, M + 1)
    error = farthest - np.minimum(chains.distance, farthest)

    def mean_error(which: Array) -> Array:
        total: Array = np.where(which, error, 0.0).sum(-1)
        return total / which.sum(-1)

    with np.errstate(invalid="ignore"):
        return {
            "delusional_vertices": np.where(chains.found, delusional[:, 1:-1].mean(-1), np.nan),
            "delusional_target": delusional[rows, chains.target].astype(float),
            "delusional_edge_error": mean_error(edges),
            "edge_error_from_delusional": mean_error(edges & delusional[:, :-1]),
            "edge_error_to_delusional": mean_error(edges & delusional[:, 1:]),
            "optimal_target": np.full(len(rows), np.nan),
            "no_target": np.zeros(len(rows)),
        }


def episode_truth(
    actor: SkipperActor | LeapActor, family: Family, tasks: TaskSet, seed: int
) -> tuple[list[dict[str, Array]], Array]:
    """What is wrong with every plan in one episode of every task; and of every death, whether its target was too far.

    A target that is farther away than the estimator can express, or out of reach, makes all actions look alike.
    """
    config, oracle = actor.policy.config, oracle_of(actor.policy.spec)
    discount, farthest = config.learning.task_discount, float(config.network.bins)
    plans, too_far = [], [np.empty(0, bool)]
    for moment in rollout(actor, family, tasks, seed):
        plan, target = moment.decision.plan, moment.decision.target
        if isinstance(plan, ProxyProblem):
            assert isinstance(config, SkipperConfig)
            plans.append(plan_truth(plan, oracle, config.planning, discount))
        elif isinstance(plan, Chains):
            plans.append(chain_truth(plan, oracle, discount, farthest))
        died = moment.ended & moment.terminated & ~family.success(moment.reward, moment.terminated)
        if moment.decision.aiming is not None:
            died &= moment.decision.aiming
        if target is not None and died.any():
            too_far.append(oracle.distances(moment.observation[died], target[died]) >= farthest)
    return plans, np.concatenate(too_far)


@torch.no_grad()
def generator_truth(
    policy: PlanningPolicy, truth: TaskTruth, rng: np.random.Generator, states: int = 8
) -> dict[str, Any]:
    """Accuracy of reconstructed placements, and how many different and how many reachable ones all codes name.

    A state is described and decoded in the context of another state of its task. The placements that codes name are
    decoded in the context of the task's start; "reachable_share" of them can be reached from there.
    """
    generator, scene = policy.network.generator, scene_of(policy.spec)
    count = len(truth.starts())
    # Reconstruct random states.
    rows = np.repeat(np.arange(count), states)
    described, context = (truth.observe(rows, random_starts(truth, rows, rng)) for _ in range(2))
    codes = generator.codes(torch.from_numpy(described)).numpy()
    found = policy.frozen.imagine(context, codes[:, None])[:, 0]
    # Decode all codes in the start states.
    everything = np.tile(np.arange(2**generator.bits), (count, 1))
    starts = truth.observe(np.arange(count), truth.starts())
    cells = policy.frozen.imagine(starts, everything)  # (N, codes)
    reachable = oracle_of(policy.spec).reachable(starts)  # (N, S)
    named = np.zeros(reachable.shape, bool)
    np.put_along_axis(named, cells, True, axis=1)
    return {
        "reconstruction": float((found == placement_of(scene, described)).mean()),
        "distinct_cells": float(named.sum(-1).mean()),
        "reachable_share": float((named & reachable).sum() / named.sum()),
    }


def measure_truth(actor: SkipperActor | LeapActor, family: Family, tasks: TaskSet, seed: int) -> dict[str, Any]:
    """All of the above: the plans of one episode of every task, the rest on some of the tasks."""
    policy, rng = actor.policy, np.random.default_rng(seed)
    truth = family.truth(tasks.subset(np.arange(min(len(tasks), TASKS))))
    if truth is None:
        raise ValueError(f"the environment {family.name!r} offers no ground truth to compare with")
    plans, too_far = episode_truth(actor, family, tasks, seed)
    joined = {name: np.concatenate([plan[name] for plan in plans]) for name in plans[0]} if plans else {}
    return {
        "edges": estimate_truth(policy, truth, rng),
        "walks": walk_truth(policy, truth, rng),
        "plans": {"plans": sum(len(plan["no_target"]) for plan in plans)}
        | {name: mean(column) for name, column in joined.items()}
        | {"deaths": len(too_far), "deaths_with_target_too_far": mean(too_far.astype(float))},
        "generator": generator_truth(policy, truth, rng),
    }
