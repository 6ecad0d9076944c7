"""Edges agree with the first step they take."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from skipper.config import PlanningConfig
from skipper.planning.backups import NEIGHBOUR, back_up_edges
from skipper.planning.proxy import solve
from skipper.types import CURRENT, Edges, Vertices

EAST, SOUTH = 0, 1
FAR = 12.0


def corridor() -> Edges:
    """Vertices: 0 current, 1 a pocket to its east, 2 the way around in the south, 3 the goal.

    The goal seems to be three steps away, in the east. From the pocket it is known to be far.
    """
    distance, action = np.full((1, 4, 4), FAR), np.full((1, 4, 4), SOUTH)
    distance[0, 0] = [FAR, 1.0, 1.0, 3.0]
    action[0, 0] = [EAST, EAST, SOUTH, EAST]
    distance[0, 2, 3], distance[0, 1, 3] = 5.0, 7.0
    reward = np.zeros((1, 4, 4))
    reward[0, :, 3] = 0.9 ** (distance[0, :, 3] - 1)
    return Edges(distance, 0.9**distance, reward, np.array([[False, False, False, True]]), action)


def present(edges: Edges) -> np.ndarray:
    return np.ones(edges.terminal.shape, bool)


def test_an_edge_is_as_long_as_its_first_step_and_the_rest():
    edges = corridor()
    found = back_up_edges(edges, present(edges), sweeps=1)
    assert found.distance[0, 0].tolist() == [FAR, 1.0, 1.0, 8.0]
    assert found.discount[0, 0, 3] == pytest.approx(0.9**8)
    assert found.distance[0, 1, 3] == 7.0  # no vertex is one step south of the pocket
    assert edges.distance[0, 0, 3] == 3.0  # what was given stays


def test_plans_avoid_the_pocket():
    vertices = Vertices(np.zeros((1, 4, 1, 1, 1)), np.arange(4)[None], np.ones((1, 4), bool), np.arange(4)[None])
    config = PlanningConfig(prune_vertices=False, edge_length_penalty=0.03)
    assert solve(vertices, corridor(), config).target.tolist() == [3]
    assert solve(vertices, corridor(), replace(config, edge_backups=1)).target.tolist() == [2]
    true = replace(config, edge_backups=1, oracle_parts=("edges",))
    assert solve(vertices, corridor(), true).target.tolist() == [3]  # true edges are believed


def test_edges_are_never_shortened():
    edges = corridor()._replace(distance=np.where(corridor().distance == 3.0, 11.0, corridor().distance))
    assert back_up_edges(edges, present(edges), sweeps=4).distance[0, 0, 3] == 11.0


def test_no_edge_leads_over_a_terminal_vertex():
    edges = corridor()._replace(terminal=np.array([[False, True, False, True]]))
    assert back_up_edges(edges, present(edges), sweeps=1).distance[0, 0].tolist() == [FAR, 1.0, 1.0, np.inf]


def test_absent_vertices_and_unknown_actions_say_nothing():
    edges = corridor()
    here = present(edges)
    here[0, 1] = False
    assert back_up_edges(edges, here, sweeps=3).distance[0, 0, 3] == 3.0
    unknown = edges._replace(action=None)
    assert back_up_edges(unknown, present(edges), sweeps=3) is unknown
    assert back_up_edges(edges, present(edges), sweeps=0) is edges


def test_several_sweeps_look_farther():
    """A chain 0, 1, 2, 3 of steps to the east, after which the way to vertex 4 is seen to be long."""
    distance, action = np.full((1, 5, 5), FAR), np.zeros((1, 5, 5), int)
    for vertex in range(3):
        distance[0, vertex, vertex + 1] = 1.0
    distance[0, :4, 4] = [2.0, 2.0, 2.0, 9.0]
    edges = Edges(distance, 0.9**distance, np.zeros((1, 5, 5)), np.zeros((1, 5), bool), action)
    lengths = [back_up_edges(edges, present(edges), sweeps).distance[0, 0, 4] for sweeps in (1, 2, 3, 4)]
    assert lengths == [3.0, 4.0, 12.0, 12.0]


def test_the_order_of_vertices_does_not_matter():
    edges, here = random_edges()
    order = np.r_[0, 1 + np.random.default_rng(1).permutation(8)]  # the current state comes first
    shuffled = Edges(*(column[:, order][:, :, order] for column in edges[:3]), edges.terminal[:, order], None)
    shuffled = shuffled._replace(action=edges.action[:, order][:, :, order])
    found, other = back_up_edges(edges, here, 2), back_up_edges(shuffled, here[:, order], 2)
    np.testing.assert_array_equal(found.distance[:, order][:, :, order], other.distance)
    np.testing.assert_array_equal(found.discount[:, order][:, :, order], other.discount)


def test_edges_into_the_current_state_need_not_be_known():
    edges, here = random_edges()
    distance = edges.distance.copy()
    distance[:, :, CURRENT] = np.inf  # as the cache leaves them out
    found, other = back_up_edges(edges, here, 3), back_up_edges(edges._replace(distance=distance), here, 3)
    np.testing.assert_array_equal(found.distance[:, :, 1:], other.distance[:, :, 1:])


def random_edges() -> tuple[Edges, np.ndarray]:
    """Edges of 8 problems with many neighbours, and which of their 9 vertices are present."""
    rng = np.random.default_rng(0)
    distance = np.where(rng.random((8, 9, 9)) < 0.3, rng.uniform(0.9, 1.4, (8, 9, 9)), rng.uniform(1, 16, (8, 9, 9)))
    terminal, here = rng.random((8, 9)) < 0.1, rng.random((8, 9)) < 0.8
    action = rng.integers(4, size=distance.shape)
    return Edges(distance, rng.random(distance.shape), np.zeros_like(distance), terminal, action), here


def plain_backups(edges: Edges, here: np.ndarray, sweeps: int) -> tuple[np.ndarray, np.ndarray]:
    """The same in the plainest way."""
    distance = np.where(edges.terminal[:, :, None], np.inf, edges.distance)
    discount = np.where(edges.terminal[:, :, None], 0.0, edges.discount)
    for problem in range(len(distance)):
        vertices, action = np.flatnonzero(here[problem]), edges.action[problem]
        first: dict[tuple[int, int], int] = {}
        for i in vertices:
            for k in sorted(set(vertices) - {i, CURRENT}, key=lambda k: distance[problem, i, k]):
                if distance[problem, i, k] <= NEIGHBOUR:
                    first.setdefault((i, action[i, k]), k)
        for _ in range(sweeps):
            before, worth = distance[problem].copy(), discount[problem].copy()
            for i, j in itertools.permutations(vertices, 2):
                k = first.get((i, action[i, j]), j)
                if k != j and before[i, k] + before[k, j] > before[i, j]:
                    distance[problem, i, j] = before[i, k] + before[k, j]
                    discount[problem, i, j] = min(worth[i, j], worth[i, k] * worth[k, j])
    return distance, discount


def test_they_equal_the_plain_twin():
    edges, here = random_edges()
    for sweeps in (1, 3):
        found = back_up_edges(edges, here, sweeps)
        distance, discount = plain_backups(edges, here, sweeps)
        np.testing.assert_array_equal(found.distance, distance)
        np.testing.assert_array_equal(found.discount, discount)


def test_negative_sweeps_are_refused():
    with pytest.raises(ValueError, match="edge_backups must not be negative"):
        PlanningConfig(edge_backups=-1)
