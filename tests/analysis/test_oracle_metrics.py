"""What is said about an agent must itself be true: policies whose errors are known are measured."""

from dataclasses import replace

import numpy as np
import pytest

from skipper.agents.leap.subgoals import Chains
from skipper.agents.skipper.agent import SkipperAgent
from skipper.agents.skipper.policy import SkipperActor, SkipperPolicy
from skipper.agents.skipper.vertices import merge_vertices
from skipper.analysis.oracle_metrics import (
    by_distance,
    chain_truth,
    episode_truth,
    estimate_truth,
    generator_truth,
    measure_truth,
    plan_truth,
    walk_truth,
)
from skipper.config import NetworkConfig, PlanningConfig, SkipperGeneratorConfig
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import LAVA, environment_spec
from skipper.envs.lava.oracle import LavaOracle, action_values, reach_truth, shortest_distances
from skipper.envs.lava.tasks import tasks_from_text, training_tasks
from skipper.nets.frozen import FrozenNetwork
from skipper.planning.proxy import solve
from skipper.training.settings import configure
from skipper.types import Edges, content_keys

WORLD = LavaConfig(6, 6, max_steps=20)
TASKS = training_tasks(WORLD, 4, seed=0)
TRUTH = LAVA.truth(TASKS)


def policy(world: LavaConfig = WORLD, **planning) -> SkipperPolicy:
    base = configure("debug", "skipper-regen")
    config = replace(
        base,
        world=world,
        network=NetworkConfig(embedding=8, partial_width=16, hidden=32),
        generator=SkipperGeneratorConfig(generator_width=4),
        planning=replace(base.planning, match_observations=True, **planning),
    )
    agent = SkipperAgent(config, environment_spec(world))
    frozen = FrozenNetwork(agent.core.network, config, agent.spec, caching=False)
    return SkipperPolicy(frozen, config, agent.spec, np.random.default_rng(0))


def test_means_are_taken_by_true_distance():
    distance = np.array([1.0, 1.0, 3.0, 40.0, np.inf])
    found = by_distance(distance, error=np.array([0.5, 1.5, np.nan, 2.0, 7.0]))
    assert found == {
        "1": {"pairs": 2, "error": 1.0},
        "3": {"pairs": 1, "error": None},
        "16": {"pairs": 1, "error": 2.0},
        "inf": {"pairs": 1, "error": 7.0},
    }


def test_true_edges_have_no_error_and_wrong_ones_the_error_they_were_given(monkeypatch):
    exact = policy(oracle_parts=("edges",))
    for measures in estimate_truth(exact, TRUTH, np.random.default_rng(0)).values():
        assert measures["distance"] == measures["discount"] == measures["reward"] == 0.0

    real = exact.edges
    monkeypatch.setattr(exact, "edges", lambda vertices: real(vertices)._replace(distance=np.full((4, 24, 24), 4.0)))
    wrong = estimate_truth(exact, TRUTH, np.random.default_rng(0))
    assert wrong["1"]["distance"] == 3.0
    assert wrong["6"]["distance"] == 2.0
    assert wrong["inf"]["distance"] == 12.0  # from the longest distance that the estimator knows
    assert wrong["inf"]["pairs"] > 0


def test_certainty_that_a_target_is_out_of_reach_is_no_error(monkeypatch):
    learned = policy()
    hopeless = Edges(np.full((4, 24, 24), 16.0), np.full((4, 24, 24), 0.99**16), np.zeros((4, 24, 24)), None)
    monkeypatch.setattr(learned, "edges", lambda vertices: hopeless)
    found = estimate_truth(learned, TRUTH, np.random.default_rng(0))
    assert found["inf"]["distance"] == found["inf"]["discount"] == 0.0
    assert found["1"]["discount"] == pytest.approx(0.99 - 0.99**16)


@pytest.mark.parametrize("slip", [0.0, 0.2])
def test_the_optimal_walk_is_the_best_and_its_reach_is_that_of_rollouts(slip):
    tasks = training_tasks(replace(WORLD, slip=slip), 4, seed=0)
    rows, targets = np.arange(4), tasks.table.starts[:, 3]
    actions = action_values(tasks, rows, targets, discount=0.95).argmax(-1)
    found = reach_truth(tasks, rows, targets, actions)
    if not slip:
        steps = shortest_distances(tasks)[rows[:, None], tasks.table.starts[:, :5], targets[:, None]]
        for row in range(4):
            for place in range(5):
                start = tasks.table.starts[row, place]
                if start != targets[row] and steps[row, place] < 1000:
                    assert found.reached[row, start] == 1.0
                    assert found.steps[row, start] == steps[row, place]
        return
    rng, start, arrived = np.random.default_rng(0), int(tasks.table.starts[0, 0]), []
    for _ in range(4000):
        cell, steps = start, 0
        while steps < WORLD.max_steps:
            action = rng.integers(4) if rng.random() < slip else actions[0, cell]
            cell, steps = int(tasks.table.successor[0, cell, action]), steps + 1
            if cell == targets[0]:
                arrived.append(steps)
                break
            if tasks.table.terminal[0, cell]:
                break
    assert found.reached[0, start] == pytest.approx(len(arrived) / 4000, abs=0.03)
    assert found.steps[0, start] == pytest.approx(np.mean(arrived), abs=0.3)


def test_walks_of_the_optimal_policy_never_fail_and_have_no_detours():
    for measures in walk_truth(policy(oracle_parts=("policy",)), TRUTH, np.random.default_rng(0)).values():
        assert measures["failure"] == 0.0
        assert measures["detour"] == 0.0
    untrained = walk_truth(policy(), TRUTH, np.random.default_rng(0))
    assert untrained["4"]["failure"] > 0.5


POCKET = tasks_from_text("A..#.\n...##\n.....\n.....\n....G")  # the cell in the upper right corner is cut off


def problem_with_a_pocket(distance_to_pocket: float):
    """Current state, the pocket, a cell on the way, one off the way, the goal; all edges true but one to the pocket."""
    cells = np.array([0, 20, 12, 3, 24])  # x * 5 + y
    seen = POCKET.observe(np.zeros(5, int), cells)[None]
    vertices = merge_vertices(seen, np.arange(5)[None], content_keys(seen))
    true = Edges(*LavaOracle(POCKET.world).edges(seen, 0.99))
    distance, discount, reward = (column.copy() for column in true[:3])
    distance[0, 0, 1], discount[0, 0, 1], reward[0, 0, 1] = distance_to_pocket, 0.99, 0.999
    return vertices, Edges(distance, discount, reward, true.terminal)


def test_a_deluded_plan_is_called_so():
    oracle, config = LavaOracle(POCKET.world), PlanningConfig(match_observations=True)
    vertices, edges = problem_with_a_pocket(2.0)
    deluded = plan_truth(solve(vertices, edges, config), oracle, config, 0.99)
    assert deluded["delusional_vertices"] == pytest.approx(1 / 3)
    assert deluded["delusional_target"] == 1.0
    assert deluded["optimal_target"] == 0.0
    # Of the edges that do not exist (three into the pocket, four out of it), one is wrong by 14 steps; that from the
    # pocket to the current state does not count, since nobody plans with it.
    assert deluded["delusional_edge_error"] == pytest.approx(14 / 6)
    assert deluded["edge_error_to_delusional"] == pytest.approx(14 / 3)
    assert deluded["edge_error_from_delusional"] == 0.0

    vertices, edges = problem_with_a_pocket(np.inf)
    sane = plan_truth(solve(vertices, edges, config), oracle, config, 0.99)
    assert sane["delusional_target"] == 0.0
    assert sane["optimal_target"] == 1.0
    assert sane["delusional_edge_error"] == 0.0


def test_errors_are_those_of_the_estimates_before_backups():
    oracle, config = LavaOracle(POCKET.world), PlanningConfig(match_observations=True)
    vertices, edges = problem_with_a_pocket(2.0)
    action = np.zeros(edges.distance.shape, int)
    edges.distance[0, 0, 2] = 1.0  # a neighbour on the way, from which the pocket is known to be out of reach
    found = [
        solve(vertices, edges._replace(action=action), replace(config, edge_backups=backups)) for backups in (0, 1)
    ]
    assert [problem.edges.distance[0, 0, 1] for problem in found] == [2.0, np.inf]
    errors = [plan_truth(problem, oracle, config, 0.99)["delusional_edge_error"] for problem in found]
    assert errors[0] == errors[1] > 0


def test_errors_from_and_to_delusional_vertices_are_told_apart():
    oracle, config = LavaOracle(POCKET.world), PlanningConfig(match_observations=True)
    vertices, edges = problem_with_a_pocket(np.inf)
    edges.distance[0, 1, 2] = 5.0  # from the pocket, where no path leads out
    found = plan_truth(solve(vertices, edges, config), oracle, config, 0.99)
    assert found["edge_error_to_delusional"] == 0.0
    assert found["edge_error_from_delusional"] == pytest.approx(11 / 3)
    assert found["delusional_edge_error"] == pytest.approx(11 / 6)


def test_a_plan_without_a_target_is_no_good_target():
    oracle, config = LavaOracle(POCKET.world), PlanningConfig(match_observations=True)
    vertices, edges = problem_with_a_pocket(np.inf)
    lost = solve(vertices, edges._replace(distance=np.full((1, 5, 5), 9.0)), config)
    found = plan_truth(lost, oracle, config, 0.99)
    assert found["no_target"] == 1.0
    assert found["optimal_target"] == 0.0
    assert np.isnan(found["delusional_target"])


def test_generators_are_measured():
    found = generator_truth(policy(), TRUTH, np.random.default_rng(0))
    assert 0.0 <= found["reconstruction"] < 0.3
    assert 1 <= found["distinct_cells"] <= 36
    assert 0.0 <= found["reachable_share"] <= 1.0


def test_all_plans_of_an_episode_are_seen_and_watching_changes_nothing():
    quiet, watched = (SkipperActor(policy(oracle_parts=("edges", "policy")), epsilon=0.0) for _ in range(2))
    plans, deaths = episode_truth(quiet, LAVA, TASKS, seed=0)
    assert not len(deaths)
    assert len(plans[0]["no_target"]) == 4
    before = watched.policy.rng.bit_generator.state
    found = measure_truth(watched, LAVA, TASKS, seed=0)
    assert found["plans"]["plans"] == sum(len(plan["no_target"]) for plan in plans)
    assert found["plans"]["optimal_target"] == 1.0
    assert found["plans"]["delusional_target"] == 0.0
    quiet_state, watched_state = (actor.policy.rng.bit_generator.state for actor in (quiet, watched))
    assert quiet_state == watched_state != before


def test_delusions_of_chains_are_counted():
    """Three subgoals, of which the pocket cannot be reached, and nothing can be reached from it."""
    oracle, cells = LavaOracle(POCKET.world), np.array([0, 12, 20, 3, 24])  # the pocket is in the middle
    seen = POCKET.observe(np.zeros(5, int), cells)[None]
    chains = Chains(seen, np.array([[2.0, 4.0, 16.0, 3.0]]), np.array([2]), np.array([True]))
    found = chain_truth(chains, oracle, 0.99, 16.0)
    assert found["delusional_vertices"] == pytest.approx(1 / 3)
    assert found["delusional_target"] == 1.0
    assert found["delusional_edge_error"] == pytest.approx((12.0 + 0.0) / 2)
    assert found["edge_error_to_delusional"] == 12.0
    assert found["edge_error_from_delusional"] == 0.0
    again = chain_truth(chains._replace(found=np.array([False])), oracle, 0.99, 16.0)
    assert again["delusional_target"] == 1.0
    assert np.isnan(again["delusional_vertices"])  # counted when they were found
    assert np.isnan(again["delusional_edge_error"])
