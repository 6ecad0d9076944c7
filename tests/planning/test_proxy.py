from dataclasses import replace

import numpy as np
import pytest

from skipper.config import PlanningConfig
from skipper.planning.proxy import (
    Edges,
    EdgeStatus,
    ProxyProblem,
    Vertices,
    keep_vertices,
    merged_vertices,
    prune_edges,
    route,
    solve,
)


def vertices(count: int, codes: list[int] | None = None) -> Vertices:
    observation = np.arange(count).reshape(1, count, 1, 1, 1)
    return merged_vertices(observation, np.array([codes or range(count)]))


def edges(distance, reward=None, terminal=None, discount: float = 0.9) -> Edges:
    distance = np.array([distance], float)
    count = distance.shape[1]
    reward = np.zeros_like(distance) if reward is None else np.array([reward], float)
    terminal = np.zeros((1, count), bool) if terminal is None else np.array([terminal])
    return Edges(distance, discount**distance, reward, terminal)


def test_equal_observations_are_merged_but_current_state_and_goal_stay():
    numbers = np.array([[5, 1, 2, 1, 5, 9, 9], [0, 1, 2, 3, 4, 5, 6], [7, 7, 7, 7, 7, 7, 7]])
    present = merged_vertices(numbers.reshape(3, 7, 1, 1, 1), np.zeros((3, 7), int)).present
    assert present.tolist() == [
        [True, True, True, False, False, False, True],  # a second 1; the current state; the goal
        [True] * 7,
        [True, False, False, False, False, False, True],
    ]


def test_each_edge_is_told_why_it_went():
    some = vertices(5, codes=[3, 3, 1, 2, 4])
    distance = np.full((5, 5), 2.0)
    distance[2, 4] = 9.0
    kept = np.array([[True, True, True, False, True]])
    status = prune_edges(some, edges(distance, terminal=[False, False, False, False, True]), kept, PlanningConfig())[0]
    assert status[0].tolist() == [
        EdgeStatus.SELF_LOOP,
        EdgeStatus.INTO_CURRENT,
        EdgeStatus.KEPT,
        EdgeStatus.VERTEX_GONE,
        EdgeStatus.KEPT,
    ]
    assert status[2].tolist() == [
        EdgeStatus.INTO_CURRENT,
        EdgeStatus.INTO_CURRENT,
        EdgeStatus.SELF_LOOP,
        EdgeStatus.VERTEX_GONE,
        EdgeStatus.TOO_LONG,
    ]
    assert status[4].tolist()[:3] == [EdgeStatus.INTO_CURRENT, EdgeStatus.INTO_CURRENT, EdgeStatus.FROM_TERMINAL]
    assert (status[3] == EdgeStatus.VERTEX_GONE).all()


def test_the_target_is_the_first_step_of_the_best_plan():
    """Two ways to the goal: over vertex 1 in 2 + 2 steps, over vertex 2 in 3 + 6; the goal itself is too far."""
    distance = np.full((4, 4), 99.0)
    distance[0, 1], distance[1, 3], distance[0, 2], distance[2, 3], distance[0, 3] = 2, 2, 3, 6, 9
    reward = np.zeros((4, 4))
    reward[:, 3] = 0.9 ** (distance[:, 3] - 1)
    problem = solve(vertices(4), lambda _: edges(distance, reward), PlanningConfig())
    assert problem.target.tolist() == [1]
    assert problem.targets.reshape(-1).tolist() == [1]
    assert problem.values.vertex[0, 0] == pytest.approx(0.9**2 * 0.9**1)
    direct = solve(vertices(4), lambda _: edges(distance, reward), PlanningConfig(edge_threshold=20))
    assert direct.target.tolist() == [1]  # still shorter than the direct edge
    one = solve(vertices(4), lambda _: edges(distance, reward), PlanningConfig(edge_threshold=20, sweeps=1))
    assert one.target.tolist() == [3]  # one sweep sees only the direct edge


def test_without_an_edge_there_is_no_target():
    problem = solve(vertices(3), lambda _: edges(np.full((3, 3), 50.0)), PlanningConfig())
    assert problem.target.tolist() == [-1]
    assert problem.targets.reshape(-1).tolist() == [0]


def test_pruning_keeps_current_state_and_goal_and_spreads_the_rest():
    places = np.array([0, 1, 1.1, 1.2, 5, 5.1, 5.2, 9])
    distance = 1 + abs(places[:, None] - places)
    given = edges(distance)
    kept = keep_vertices(vertices(8), given, PlanningConfig(max_vertices=4))[0]
    assert np.flatnonzero(kept).tolist() == [0, 2, 5, 7]
    assert keep_vertices(vertices(8), given, PlanningConfig(max_vertices=4, prune_vertices=False)).all()
    assert keep_vertices(vertices(8), given, PlanningConfig(max_vertices=8)).all()


def test_terminal_vertices_count_as_far_from_everything():
    distance = np.ones((5, 5))
    far = edges(distance, terminal=[False, True, True, True, True])
    kept = keep_vertices(vertices(5), far, PlanningConfig(max_vertices=3))
    assert kept.sum() == 3  # and clustering saw no infinite number
    infinite = edges(np.full((5, 5), np.inf))
    assert (
        keep_vertices(vertices(5), infinite._replace(discount=np.zeros((1, 5, 5))), PlanningConfig(max_vertices=3)).sum() == 3
    )


def test_problems_are_solved_as_if_they_were_alone():
    rng = np.random.default_rng(0)
    distance = rng.uniform(1, 16, size=(6, 10, 10))
    reward = rng.random((6, 10, 10)) * (rng.random((6, 10, 10)) < 0.2)
    all_edges = Edges(distance, 0.95**distance, reward, rng.random((6, 10)) < 0.1)
    all_vertices = merged_vertices(np.arange(60).reshape(6, 10, 1, 1, 1), rng.integers(6, size=(6, 10)))
    all_vertices = all_vertices._replace(present=rng.random((6, 10)) < 0.9)
    all_vertices.present[:, [0, -1]] = True
    config = replace(PlanningConfig(), max_vertices=6)
    together = solve(all_vertices, lambda _: all_edges, config)
    for row in range(6):
        part = slice(row, row + 1)
        alone = solve(
            Vertices(*(column[part] for column in all_vertices)),
            lambda _, part=part: Edges(*(column[part] for column in all_edges[:4])),
            config,
        )
        assert alone.target == together.target[row]
        assert (alone.status[0] == together.status[row]).all()


def test_ways_that_led_back_are_doubted():
    """Two targets, the better of which was set out for twice already without getting anywhere."""
    distance = np.full((1, 4, 4), 9.0)
    distance[0, 0, 1], distance[0, 0, 2], distance[0, 1, 3], distance[0, 2, 3] = 2.0, 3.0, 1.0, 1.0
    reward = np.zeros((1, 4, 4))
    reward[0, :, 3] = 1.0
    action = np.zeros((1, 4, 4), int)
    action[0, 0, 2] = 1
    found = Edges(distance, 0.9**distance, reward, np.zeros((1, 4), bool), action)
    vertices = merged_vertices(np.arange(4, dtype=np.uint8).reshape(1, 4, 1, 1, 1), np.arange(4)[None])
    tried = np.zeros((1, 4, 2))

    def target(revisit_penalty: float) -> int:
        return int(solve(vertices, lambda _: found, PlanningConfig(revisit_penalty=revisit_penalty), tried).target[0])

    assert target(0.2) == 1
    tried[0, 0, 0] = 2  # with the action that leads to 1 and, later, to the goal
    assert target(0.2) == 2
    assert target(0.01) == 1
    assert target(0.0) == 1
    tried[0, 0, 1] = 5  # the other one even more often
    assert target(0.2) == 1
    problem = solve(vertices, lambda _: found, PlanningConfig(revisit_penalty=0.2), tried)
    assert problem.trust[0, 0, 1] == pytest.approx(0.64)
    assert problem.trust[0, 0, 2] == pytest.approx(0.8**5)
    assert (problem.trust[0, 1:] == 1).all()
    unknown = solve(vertices, lambda _: found._replace(action=None), PlanningConfig(revisit_penalty=0.2), tried)
    assert (unknown.trust == 1).all()


def test_caution_prefers_near_vertices_to_a_direct_way():
    """The goal is 6 steps away, or so it seems, and 3 + 4 steps over a vertex between."""
    found = edges([[9, 3, 6], [9, 9, 4], [9, 9, 9]], reward=[[0, 0, 1], [0, 0, 1], [0, 0, 0]])

    def solved(**settings) -> ProxyProblem:
        return solve(vertices(3), lambda _: found, PlanningConfig(**settings))

    bold, cautious = solved(), solved(edge_length_penalty=0.03)
    assert (bold.target[0], cautious.target[0]) == (2, 1)
    assert cautious.values.action[0, 0, 2] == pytest.approx(0.97**36)
    assert cautious.values.action[0, 0, 1] == pytest.approx(0.97**9 * found.discount[0, 0, 1] * 0.97**16)
    assert solved(edge_length_penalty=0.001).target[0] == 2
    # The truth needs no edge_length_penalty, whatever it says of ways that do not exist.
    true = found._replace(distance=np.where(found.distance == 9, np.inf, found.distance))
    assert solve(vertices(3), lambda _: true, PlanningConfig(edge_length_penalty=0.03, oracle_parts=("edges",))).target[0] == 2
    assert solve(vertices(3), lambda _: true, PlanningConfig(edge_length_penalty=0.03)).target[0] == 1


def test_the_route_leads_over_the_best_vertices_to_the_goal():
    far = 9.0
    found = edges(
        [[far, 2, 3, far], [far, far, 2, far], [far, far, far, 2], [far] * 4],
        reward=[[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]],
    )
    problem = solve(vertices(4), lambda _: found, PlanningConfig())
    assert route(problem, 0) == [0, 2, 3]
    stuck = solve(vertices(4), lambda _: edges(np.full((4, 4), far)), PlanningConfig())
    assert route(stuck, 0) == [0]
