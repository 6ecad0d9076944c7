import numpy as np

from skipper.agents.skipper.plan_state import PlanState
from skipper.types import Vertices


def test_actions_are_counted_by_state():
    plans = PlanState.empty(2, 3, (2, 2, 2), max_steps=4)
    plans.begin_episodes(np.array([True, True]))
    for key, action in (([7, 5], [0, 1]), ([8, 5], [2, 1]), ([7, 6], [0, 3])):
        plans.visits.record(np.array(key), np.array(action))
    counts = plans.visits.counts(np.array([1, 0]), np.array([[5, 6], [7, 8]]), actions=4)
    assert counts.tolist() == [[[0, 2, 0, 0], [0, 0, 0, 1]], [[2, 0, 0, 0], [0, 0, 1, 0]]]
    plans.begin_episodes(np.array([True, False]))  # the first environment begins a new episode
    counts = plans.visits.counts(np.array([0, 1]), np.array([[7], [5]]), actions=4)
    assert counts.tolist() == [[[0, 0, 0, 0]], [[0, 2, 0, 0]]]
    for _ in range(5):  # longer than expected
        plans.visits.record(np.array([9, 9]), np.array([1, 1]))
    assert plans.visits.counts(np.array([1]), np.array([[9]]), actions=4).tolist() == [[[0, 1, 0, 0]]]


def test_only_the_first_plan_of_an_episode_prunes_for_good():
    plans, rows = PlanState.empty(2, 4, (2, 2, 2), max_steps=4), np.array([1])
    vertices = Vertices(np.full((1, 4, 2, 2, 2), 7, np.uint8), np.zeros((1, 4), int), np.ones((1, 4), bool), None)
    plans.reached_code[:] = 5
    kept, hidden = np.array([[True, False, False, True]]), np.array([[False, True, False, False]])
    plans.record_problem(rows, vertices, kept, hidden)
    assert plans.remaining.tolist() == [[False] * 4, [True, True, False, True]]  # the hidden one stays
    assert plans.reached_code.tolist() == [5, -1]
    assert (plans.vertices[1] == 7).all()
    plans.reached_code[1] = 3
    plans.record_problem(rows, vertices, kept, np.zeros((1, 4), bool))
    assert plans.remaining[1].tolist() == [True, True, False, True]
    assert plans.kept[1].tolist() == [True, False, False, True]
    assert plans.reached_code[1] == 3
    plans.begin_episodes(np.array([False, True]))
    assert not plans.remaining.any()
