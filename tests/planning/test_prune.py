import numpy as np

from skipper.config import PlanningConfig
from skipper.planning.prune import EdgeStatus, prune_edges, prune_vertices
from skipper.types import Edges, Vertices


def vertices(count: int, codes: list[int] | None = None, keys: list[int] | None = None) -> Vertices:
    numbers = np.arange(count)[None]
    code, key = (numbers if given is None else np.array([given]) for given in (codes, keys))
    return Vertices(numbers.reshape(1, count, 1, 1, 1), code, np.ones((1, count), bool), key)


def edges(distance, terminal=None) -> Edges:
    distance = np.array([distance], float)
    terminal = np.zeros(distance.shape[:2], bool) if terminal is None else np.array([terminal])
    return Edges(distance, 0.9**distance, np.zeros_like(distance), terminal)


def test_each_pruned_edge_has_its_reason():
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


def test_the_current_state_is_matched_by_description_or_by_observation():
    some, given = vertices(4, codes=[7, 7, 1, 2], keys=[5, 6, 5, 8]), edges(np.full((4, 4), 2.0))
    kept = np.ones((1, 4), bool)
    by_code = prune_edges(some, given, kept, PlanningConfig())[0, 3]
    assert by_code.tolist()[:3] == [EdgeStatus.INTO_CURRENT, EdgeStatus.INTO_CURRENT, EdgeStatus.KEPT]
    by_key = prune_edges(some, given, kept, PlanningConfig(match_observations=True))[0, 3]
    assert by_key.tolist()[:3] == [EdgeStatus.INTO_CURRENT, EdgeStatus.KEPT, EdgeStatus.INTO_CURRENT]


def test_true_edges_are_not_too_long_unless_there_is_no_path():
    distance = [[9.0, 30.0, np.inf], [9.0, 9.0, 9.0], [9.0, 9.0, 9.0]]
    config = PlanningConfig(oracle_parts=("edges",))
    status = prune_edges(vertices(3), edges(distance), np.ones((1, 3), bool), config)[0, 0]
    assert status.tolist() == [EdgeStatus.SELF_LOOP, EdgeStatus.KEPT, EdgeStatus.TOO_LONG]


def test_pruning_keeps_current_state_and_goal_and_spreads_the_rest():
    places = np.array([0, 1, 1.1, 1.2, 5, 5.1, 5.2, 9])
    given = edges(1 + abs(places[:, None] - places))
    kept = prune_vertices(vertices(8), given, PlanningConfig(max_vertices=4))[0]
    assert np.flatnonzero(kept).tolist() == [0, 2, 5, 7]
    assert prune_vertices(vertices(8), given, PlanningConfig(max_vertices=4, prune_vertices=False)).all()
    assert prune_vertices(vertices(8), given, PlanningConfig(max_vertices=8)).all()


def test_only_the_goal_is_a_fixed_medoid_unless_the_current_state_is_clustered_too():
    places = np.array([0, 0.1, 0.2, 3, 8])  # the third vertex stands for its neighbours, unless the first does
    given = edges(1 + abs(places[:, None] - places))
    paper, authors = PlanningConfig(max_vertices=3), PlanningConfig(max_vertices=3, cluster_current_state=True)
    assert np.flatnonzero(prune_vertices(vertices(5), given, paper)).tolist() == [0, 2, 4]
    assert np.flatnonzero(prune_vertices(vertices(5), given, authors)).tolist() == [0, 3, 4]


def test_terminal_vertices_count_as_far_from_everything():
    far = edges(np.ones((5, 5)), terminal=[False, True, True, True, True])
    kept = prune_vertices(vertices(5), far, PlanningConfig(max_vertices=3))
    assert kept.sum() == 3  # and clustering saw no infinite number
    infinite = edges(np.full((5, 5), np.inf))._replace(discount=np.zeros((1, 5, 5)))
    assert prune_vertices(vertices(5), infinite, PlanningConfig(max_vertices=3)).sum() == 3
