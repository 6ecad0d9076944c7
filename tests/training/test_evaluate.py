import numpy as np
import pytest
from scipy.stats import binomtest

from skipper.agents.fixed import OptimalAgent, RandomAgent
from skipper.config import EVALUATION_DIFFICULTIES, WorldConfig
from skipper.envs.oracle import LavaOracle
from skipper.envs.tasks import evaluation_tasks, tasks_from_text, training_tasks
from skipper.training.evaluate import Episodes, play, summarise, wilson_interval
from skipper.types import Decision, TimeStep


class ScriptedAgent:
    """Walks east in the first task, south in the second, and stays at the edge in the third."""

    def __init__(self) -> None:
        self.firsts: list[list[bool]] = []

    def act(self, timestep: TimeStep) -> Decision:
        self.firsts.append(timestep.first.tolist())
        return Decision(np.array([0, 1, 3]))


def test_episodes_end_as_they_should():
    tasks = tasks_from_text(*["A.G\n#..\n..."] * 3, world=WorldConfig(start="fixed", max_steps=5))
    agent = ScriptedAgent()
    episodes = play(agent, tasks, seed=0)
    assert episodes.success.tolist() == [True, False, False]
    assert episodes.death.tolist() == [False, True, False]
    assert episodes.timeout.tolist() == [False, False, True]
    assert episodes.length.tolist() == [2, 1, 5]
    assert agent.firsts[:2] == [[True] * 3, [False, True, False]]


def test_only_the_first_episode_of_each_task_counts():
    class Relentless:
        """Fails the first episode and wins the second in one task, the other way round in the other; a third waits."""

        def __init__(self) -> None:
            self.first_goals: list[bytes] = []
            self.episodes = np.array([-1, -1, -1])

        def act(self, timestep: TimeStep) -> Decision:
            self.episodes += timestep.first
            win = (self.episodes % 2 == [1, 0, 2]).tolist()
            return Decision(np.array([0 if win[0] else 1, 0 if win[1] else 1, 3]))

    tasks = tasks_from_text(*["AG.\n#..\n..."] * 3, world=WorldConfig(start="fixed", max_steps=6))
    episodes = play(Relentless(), tasks, seed=0)
    assert episodes.success.tolist() == [False, True, False]
    assert episodes.death.tolist() == [True, False, False]
    assert episodes.length.tolist() == [1, 1, 6]


def test_the_seed_decides_the_slips():
    tasks = evaluation_tasks(WorldConfig(slip=0.3), 0.35, 200, seed=0)
    played = [play(OptimalAgent(LavaOracle(tasks.world)), tasks, seed) for seed in (0, 0, 500)]
    assert (played[0].length == played[1].length).all()
    assert not (played[0].length == played[2].length).all()


def test_training_tasks_are_played_from_their_own_start_unless_asked_otherwise():
    tasks = training_tasks(WorldConfig(start="uniform"), 200, seed=0)
    agent = OptimalAgent(LavaOracle(tasks.world))
    assert play(agent, tasks, 0).length.mean() > 15 > 13 > play(agent, tasks, 0, "uniform").length.mean()


def test_summary_computed_by_hand():
    success = np.array([True, True, False, False])
    death = np.array([False, False, True, False])
    row = summarise(Episodes(success, death, np.array([2, 4, 6, 8])))
    assert (row.success, row.episodes, row.length, row.deaths, row.timeouts) == (0.5, 4, 5.0, 0.25, 0.25)
    assert (row.low, row.high) == wilson_interval(0.5, 4)


@pytest.mark.parametrize(("hits", "count"), [(0, 1), (0, 20), (2, 4), (399, 400), (1000, 1000)])
def test_intervals_are_those_of_scipy(hits, count):
    expected = binomtest(hits, count).proportion_ci(0.95, method="wilson")
    assert wilson_interval(hits / count, count) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize("dynamics", ["lava", "walls"])
@pytest.mark.parametrize("difficulty", EVALUATION_DIFFICULTIES)
def test_the_optimal_agent_solves_a_thousand_tasks_of_every_difficulty(dynamics, difficulty):
    tasks = evaluation_tasks(WorldConfig(dynamics=dynamics), difficulty, 1000, seed=0)
    assert play(OptimalAgent(LavaOracle(tasks.world)), tasks, seed=0).success.all()


def test_the_random_agent_hardly_ever_crosses_the_lava():
    for difficulty in EVALUATION_DIFFICULTIES:
        tasks = evaluation_tasks(WorldConfig(), difficulty, 1000, seed=0)
        assert play(RandomAgent(4, np.random.default_rng(0)), tasks, seed=0).success.mean() < 0.02
