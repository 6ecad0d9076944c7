"""Chains of subgoals: costs and choices by hand, and the search with true distances."""

from dataclasses import replace

import numpy as np
import pytest

from skipper.agents.leap.config import LeapConfig, LeapPlanningConfig
from skipper.agents.leap.policy import LeapActor, LeapPolicy, evaluation_actor
from skipper.agents.leap.subgoals import chain_cost, choose_again, segment_lengths
from skipper.config import DecisionConfig
from skipper.envs.lava.config import EVALUATION_DIFFICULTIES, LavaConfig
from skipper.envs.lava.family import LAVA, environment_spec
from skipper.envs.lava.tasks import evaluation_tasks
from skipper.nets.estimators import LeapNetwork
from skipper.nets.layers import seeded_initialisation
from skipper.planning import cem
from skipper.training.evaluate import play
from skipper.training.settings import configure

WORLD = LavaConfig()
SPEC = environment_spec(WORLD)


def actor(*oracle_parts: str, seed: int = 0, **planning) -> LeapActor:
    """An untrained agent with ground truth in place of some of its parts."""
    config = configure("debug", "leap")
    assert isinstance(config, LeapConfig)
    settings = replace(config.planning, oracle_parts=oracle_parts, **planning)
    config = replace(config, planning=settings, decision=DecisionConfig())
    with seeded_initialisation(0):
        network = LeapNetwork(config, SPEC)
    return evaluation_actor(network, config, SPEC, np.random.default_rng(seed))


def test_a_chain_costs_its_longest_segment():
    length = np.arange(25.0).reshape(1, 5, 5)  # current state, three codes, goal; from row to column
    codes = np.array([[[0, 1, 2], [2, 2, 0]]])
    # 0 -> 1 -> 2 -> 3 -> 4 and 0 -> 3 -> 3 -> 1 -> 4
    assert chain_cost(length, codes).tolist() == [[max(1, 7, 13, 19), max(3, 18, 16, 9)]]


def test_no_chain_leads_on_from_a_terminal_state():
    config = LeapPlanningConfig()
    length = segment_lengths(np.full((1, 5, 5), 3.0), np.array([[False, True, False, False, True]]), config)
    assert (length[0, 1] == 100.0).all()
    assert (length[0, [0, 2, 3]] == 3.0).all()  # the end of a segment may be terminal: the goal is
    costs = chain_cost(length, np.array([[[0, 1, 2], [1, 1, 2]]]))
    assert costs.tolist() == [[100.0, 3.0]]


def test_the_shortest_way_over_a_subgoal_or_straight_to_the_goal_is_chosen():
    segments = np.array([[2.0, 3.0, 4.0]])
    assert choose_again(np.array([[1.0, 5.0, 9.0, 16.0]]), segments).tolist() == [0]  # totals 10, 12, 13, 16
    assert choose_again(np.array([[9.0, 5.0, 9.0, 16.0]]), segments).tolist() == [1]
    assert choose_again(np.array([[9.0, 9.0, 9.0, 7.0]]), segments).tolist() == [3]


def test_equal_states_have_equal_distances_and_each_is_estimated_once():
    policy = actor().policy
    tasks = evaluation_tasks(WORLD, 0.35, 2, seed=0)
    seen, goal = (tasks.observe(np.arange(2), cells) for cells in (tasks.table.start, tasks.table.goal))
    states = policy.subgoal_source.imagine_all(seen, goal)
    distance, terminal = policy.subgoal_source.distances(states)
    assert distance.shape == (2, 66, 66)
    assert np.isfinite(distance).all()
    assert ((distance >= 1.0) & (distance <= 16.0)).all()
    for problem in range(2):
        for one in (3, 40):
            for two in (0, 17, 65):
                nearness = policy.action_values(states[problem, [one]], states[problem, [two]])
                assert distance[problem, one, two] == pytest.approx(16.0 - 15.0 * nearness.max(), abs=1e-3)
    alone = policy.subgoal_source.to_targets(states[:, 0], states[:, [5, 65]])
    np.testing.assert_allclose(alone, distance[:, 0][:, [5, 65]], atol=1e-3)
    assert terminal.shape == (2, 66)


@pytest.mark.parametrize("difficulty", EVALUATION_DIFFICULTIES)
def test_the_search_improves_with_true_distances(difficulty, monkeypatch):
    """With codes on free cells the longest segment falls from about 7.0 to 6.3 (the optimum is about 4.4)."""
    histories = []

    def watched(*arguments):
        found = cem.search(*arguments)
        histories.append(found.history)
        return found

    monkeypatch.setattr("skipper.agents.leap.subgoals.search", watched)
    tasks = evaluation_tasks(WORLD, difficulty, 80, seed=0)
    seen, goal = (tasks.observe(np.arange(80), cells) for cells in (tasks.table.start, tasks.table.goal))
    chains = actor("edges", "vertices").plan(seen, goal)
    history = histories[0].mean(1)
    assert history[0] - history[-1] > 0.3
    assert 5.0 < history[-1] < 8.0
    np.testing.assert_array_equal(chains.distance.max(-1), histories[0][-1])
    assert (chains.target == 1).all()  # the first subgoal, even where the goal is nearer


class TrueDistances(LeapPolicy):
    """Walks by true distances, which end at 16 as learned ones do."""

    def action_values(self, observation, target):
        values = SPEC.oracle.action_values(observation, target)  # 0.99 ** (distance - 1)
        distance = np.full(values.shape, np.inf)
        distance[values > 0] = 1.0 + np.log(values[values > 0]) / np.log(0.99)
        return (16.0 - np.minimum(distance.round(), 16.0)) / 15.0


def test_true_distances_solve_most_tasks():
    """The rest has its target farther away than distances can tell, where all actions look alike."""
    player = actor("edges", "vertices")
    player.policy = TrueDistances(player.policy.frozen, player.policy.config, SPEC, player.policy.rng)
    sets = [evaluation_tasks(WORLD, difficulty, 50, seed=1) for difficulty in EVALUATION_DIFFICULTIES]
    success = np.concatenate([play(player, LAVA, tasks, 0).success for tasks in sets])
    assert 0.88 <= success.mean() < 1.0
