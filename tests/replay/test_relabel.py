import numpy as np

from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.tasks import training_tasks
from skipper.replay.relabel import relabel
from skipper.runtime.hashing import content_hashes


def test_equal_observations_are_one_state():
    rows = np.array([[1, 2], [3, 4], [1, 2], [5, 6], [3, 4], [2, 1]], np.uint8)
    one, two, three, four, five, six = content_hashes(rows).tolist()
    assert one == three
    assert two == five
    assert len({one, two, four, six}) == 4


def test_states_of_real_tasks_are_told_apart():
    tasks = training_tasks(LavaConfig(), 50, seed=0)
    rows = np.repeat(np.arange(50), 144)
    seen = tasks.observe(rows, np.tile(np.arange(144), 50)).reshape(7200, -1)
    assert len(set(content_hashes(seen).tolist())) == len(np.unique(seen, axis=0)) == 7200


def test_targets_come_from_the_episode_but_never_from_the_transitions_own_start():
    keys = np.array([0, 1, 0, 3, 4])  # the third state is the first one again
    units = np.random.default_rng(0).random((4, 200))
    transitions, targets = relabel(keys, units, "episode")
    found = {step: set(targets[transitions == step].tolist()) for step in range(4)}
    # States 0 and 2 are the same: whichever comes up first stands for both.
    assert found[0] == {1, 3, 4} == found[2]
    assert found[1] in ({0, 3, 4}, {2, 3, 4})
    assert len(targets) == 3 + 3 + 3 + 3


def test_the_future_lies_after_the_transition():
    transitions, targets = relabel(np.arange(5), np.random.default_rng(0).random((4, 100)), "future")
    found = {step: set(targets[transitions == step].tolist()) for step in range(4)}
    assert found == {0: {1, 2, 3, 4}, 1: {2, 3, 4}, 2: {3, 4}, 3: {4}}


def test_each_draw_is_uniform_over_the_candidates():
    counts = np.zeros(4, int)
    for unit in np.linspace(0, 1, 3000, endpoint=False):
        _, targets = relabel(np.arange(4), np.full((3, 1), unit), "episode")
        counts[targets[0]] += 1
    assert counts.tolist() == [0, 1000, 1000, 1000]


def test_an_episode_that_never_moves_has_no_targets():
    transitions, targets = relabel(np.zeros(4, int), np.random.default_rng(0).random((3, 4)), "episode")
    assert len(transitions) == len(targets) == 0
