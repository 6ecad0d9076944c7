import numpy as np

from skipper.agents.skipper.plan_state import PlanState


def test_actions_are_counted_by_state():
    plans = PlanState.empty(2, 3, (2, 2, 2), max_steps=4)
    plans.begin_episodes(np.array([True, True]))
    for key, action in (([7, 5], [0, 1]), ([8, 5], [2, 1]), ([7, 6], [0, 3])):
        plans.record_action(np.array(key), np.array(action))
    counts = plans.visit_counts(np.array([1, 0]), np.array([[5, 6], [7, 8]]), actions=4)
    assert counts.tolist() == [[[0, 2, 0, 0], [0, 0, 0, 1]], [[2, 0, 0, 0], [0, 0, 1, 0]]]
    plans.begin_episodes(np.array([True, False]))  # the first environment begins a new episode
    counts = plans.visit_counts(np.array([0, 1]), np.array([[7], [5]]), actions=4)
    assert counts.tolist() == [[[0, 0, 0, 0]], [[0, 2, 0, 0]]]
    for _ in range(5):  # longer than expected
        plans.record_action(np.array([9, 9]), np.array([1, 1]))
    assert plans.visit_counts(np.array([1]), np.array([[9]]), actions=4).tolist() == [[[0, 1, 0, 0]]]


def test_saved_plans_are_restored_as_copies():
    plans = PlanState.empty(2, 3, (2, 2, 2), max_steps=4)
    plans.record_action(np.array([1, 2]), np.array([3, 0]))
    saved = plans.state_dict()
    again = PlanState.from_state(saved)
    plans.record_action(np.array([1, 2]), np.array([3, 0]))
    saved["steps"][:] = 0
    assert again.length.tolist() == [1, 1]
    assert (again.steps > 0).all()
    assert again.taken[:, 0].tolist() == [3, 0]
