from dataclasses import replace

import numpy as np
import pytest

from skipper.config import PlanningConfig
from skipper.planning.proxy import ProxyProblem, solve
from skipper.planning.prune import EdgeStatus
from skipper.types import Edges, LazyEdges, Vertices


def vertices(count: int) -> Vertices:
    numbers = np.arange(count)[None]
    return Vertices(numbers.reshape(1, count, 1, 1, 1), numbers, np.ones((1, count), bool), numbers)


def edges(distance, reward=None, terminal=None, discount: float = 0.9) -> Edges:
    distance = np.array([distance], float)
    count = distance.shape[1]
    reward = np.zeros_like(distance) if reward is None else np.array([reward], float)
    terminal = np.zeros((1, count), bool) if terminal is None else np.array([terminal])
    return Edges(distance, discount**distance, reward, terminal)


def test_the_target_is_the_first_step_of_the_best_plan():
    """Two ways to the goal: over vertex 1 in 2 + 2 steps, over vertex 2 in 3 + 6; the goal itself is too far."""
    distance = np.full((4, 4), 99.0)
    distance[0, 1], distance[1, 3], distance[0, 2], distance[2, 3], distance[0, 3] = 2, 2, 3, 6, 9
    reward = np.zeros((4, 4))
    reward[:, 3] = 0.9 ** (distance[:, 3] - 1)
    problem = solve(vertices(4), edges(distance, reward), PlanningConfig())
    assert problem.target.tolist() == [1]
    assert problem.targets.reshape(-1).tolist() == [1]
    assert problem.values.vertex[0, 0] == pytest.approx(0.9**2 * 0.9**1)
    direct = solve(vertices(4), edges(distance, reward), PlanningConfig(edge_threshold=20))
    assert direct.target.tolist() == [1]  # still shorter than the direct edge
    one = solve(vertices(4), edges(distance, reward), PlanningConfig(edge_threshold=20, sweeps=1))
    assert one.target.tolist() == [3]  # one sweep sees only the direct edge


def test_without_an_edge_there_is_no_target():
    problem = solve(vertices(3), edges(np.full((3, 3), 50.0)), PlanningConfig())
    assert problem.target.tolist() == [-1]
    assert problem.targets.reshape(-1).tolist() == [0]


def test_problems_are_solved_as_if_they_were_alone():
    rng = np.random.default_rng(0)
    distance = rng.uniform(1, 16, size=(6, 10, 10))
    reward = rng.random((6, 10, 10)) * (rng.random((6, 10, 10)) < 0.2)
    all_edges = Edges(distance, 0.95**distance, reward, rng.random((6, 10)) < 0.1)
    present = rng.random((6, 10)) < 0.9
    present[:, [0, -1]] = True
    keys = np.arange(60).reshape(6, 10)
    all_vertices = Vertices(keys.reshape(6, 10, 1, 1, 1), rng.integers(6, size=(6, 10)), present, keys)
    config = replace(PlanningConfig(), max_vertices=6)
    together = solve(all_vertices, all_edges, config)
    for row in range(6):
        part = slice(row, row + 1)
        alone = solve(
            Vertices(*(column[part] for column in all_vertices)),
            Edges(*(column[part] for column in all_edges[:4])),
            config,
        )
        assert alone.target == together.target[row]
        assert (alone.status[0] == together.status[row]).all()


def test_edges_whose_first_action_was_tried_before_are_trusted_less():
    """Two targets, the better of which was tried twice already without success."""
    distance = np.full((1, 4, 4), 9.0)
    distance[0, 0, 1], distance[0, 0, 2], distance[0, 1, 3], distance[0, 2, 3] = 2.0, 3.0, 1.0, 1.0
    reward = np.zeros((1, 4, 4))
    reward[0, :, 3] = 1.0
    action = np.zeros((1, 4, 4), int)
    action[0, 0, 2] = 1
    found = Edges(distance, 0.9**distance, reward, np.zeros((1, 4), bool), action)
    visits = np.zeros((1, 4, 2))

    def target(revisit_penalty: float) -> int:
        return int(solve(vertices(4), found, PlanningConfig(), (1.0 - revisit_penalty) ** visits).target[0])

    assert target(0.2) == 1
    visits[0, 0, 0] = 2  # with the action that leads to 1 and, later, to the goal
    assert target(0.2) == 2
    assert target(0.01) == 1
    assert target(0.0) == 1
    visits[0, 0, 1] = 5  # the other one even more often
    assert target(0.2) == 1
    problem = solve(vertices(4), found, PlanningConfig(), 0.8**visits)
    assert problem.trust[0, 0, 1] == pytest.approx(0.64)
    assert problem.trust[0, 0, 2] == pytest.approx(0.8**5)
    assert (problem.trust[0, 1:] == 1).all()
    unknown = solve(vertices(4), found._replace(action=None), PlanningConfig(), 0.8**visits)
    assert (unknown.trust == 1).all()


def test_the_penalty_for_length_prefers_near_vertices_to_a_direct_path():
    """The goal is 6 steps away, or so it seems, and 3 + 4 steps over a vertex between."""
    found = edges([[9, 3, 6], [9, 9, 4], [9, 9, 9]], reward=[[0, 0, 1], [0, 0, 1], [0, 0, 0]])

    def solved(**settings) -> ProxyProblem:
        return solve(vertices(3), found, PlanningConfig(**settings))

    bold, cautious = solved(), solved(edge_length_penalty=0.03)
    assert (bold.target[0], cautious.target[0]) == (2, 1)
    assert cautious.values.action[0, 0, 2] == pytest.approx(0.97**36)
    assert cautious.values.action[0, 0, 1] == pytest.approx(0.97**9 * found.discount[0, 0, 1] * 0.97**16)
    assert solved(edge_length_penalty=0.001).target[0] == 2
    # True edges are not penalised, and those that do not exist are not used.
    true = found._replace(distance=np.where(found.distance == 9, np.inf, found.distance))
    assert solve(vertices(3), true, PlanningConfig(edge_length_penalty=0.03, oracle_parts=("edges",))).target[0] == 2
    assert solve(vertices(3), true, PlanningConfig(edge_length_penalty=0.03)).target[0] == 1


def test_rewards_are_only_asked_for_where_an_edge_is_kept():
    distance = np.array([[[9.0, 2.0, 20.0], [9.0, 9.0, 3.0], [9.0, 9.0, 9.0]]])
    asked = []

    def reward(usable: np.ndarray) -> np.ndarray:
        asked.append(usable)
        return np.where(usable, 0.5, 0.0)

    lazy = LazyEdges(distance, 0.9**distance, np.zeros((1, 3), bool), np.zeros((1, 3, 3), int), reward)
    problem = solve(vertices(3), lazy, PlanningConfig())
    assert (asked[0] == (problem.status == EdgeStatus.KEPT)).all()
    assert np.argwhere(asked[0][0]).tolist() == [[0, 1], [1, 2]]
    assert problem.edges.reward.sum() == 1.0


FAR = 9.0


def test_the_route_leads_over_the_best_vertices_to_the_goal():
    found = edges(
        [[FAR, 2, 3, FAR], [FAR, FAR, 2, FAR], [FAR, FAR, FAR, 2], [FAR] * 4],
        reward=[[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]],
    )
    problem = solve(vertices(4), found, PlanningConfig())
    assert problem.view(0).route == [0, 2, 3]
    stuck = solve(vertices(4), edges(np.full((4, 4), FAR)), PlanningConfig()).view(0)
    assert (stuck.route, stuck.target) == ([0], -1)


def test_a_view_leaves_out_merged_vertices():
    found = edges(
        [[FAR, FAR, 2, FAR], [2, 2, 2, 2], [FAR, FAR, FAR, 2], [FAR] * 4],
        reward=[[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]],
        terminal=[False, False, False, True],
    )
    some = vertices(4)
    some.present[0, 1] = False
    problem = solve(some, found, PlanningConfig())
    view = problem.view(0)
    assert view.states.reshape(-1).tolist() == [0, 2, 3]
    assert (view.route, view.target) == ([0, 1, 2], 1)
    graph = view.graph
    assert (graph.merged, graph.kept.tolist(), graph.terminal.tolist()) == (1, [True] * 3, [False, False, True])
    assert graph.distance.tolist() == [[FAR, 2, FAR], [FAR, FAR, 2], [FAR] * 3]
    assert graph.reward.tolist() == [[0, 0, 0], [0, 0, 1], [0, 0, 0]]
    assert graph.status[0].tolist() == [EdgeStatus.SELF_LOOP, EdgeStatus.KEPT, EdgeStatus.TOO_LONG]
    assert (graph.trust == 1).all()
    assert graph.value.tolist() == problem.values.vertex[0, [0, 2, 3]].tolist()
    assert graph.worth.tolist() == problem.values.action[0, 0, [0, 2, 3]].tolist()


def test_a_view_shows_trust_where_an_edge_is_kept():
    found = edges([[2.0] * 3] * 3)._replace(action=np.zeros((1, 3, 3), int))
    graph = solve(vertices(3), found, PlanningConfig(), np.full((1, 3, 1), 0.5)).view(0).graph
    kept = graph.status == EdgeStatus.KEPT
    assert kept.any()
    assert (graph.trust == np.where(kept, 0.5, 1.0)).all()
