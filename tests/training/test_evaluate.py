from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

from skipper.agents.baselines import OptimalAgent, RandomAgent
from skipper.envs.lava.config import EVALUATION_DIFFICULTIES, LavaConfig
from skipper.envs.lava.family import LAVA
from skipper.envs.lava.oracle import LavaOracle
from skipper.envs.lava.scene import scenery_of
from skipper.envs.lava.tasks import evaluation_tasks, tasks_from_text, training_tasks
from skipper.training.evaluate import Episodes, evaluate_learner, play, summarise, wilson_interval
from skipper.training.settings import configure
from skipper.types import Decision, TimeStep


class ScriptedAgent:
    """Walks east in the first task, south in the second, and stays at the edge in the third."""

    def __init__(self) -> None:
        self.firsts: list[list[bool]] = []

    def act(self, timestep: TimeStep) -> Decision:
        self.firsts.append(timestep.first.tolist())
        return Decision(np.array([0, 1, 3]))


def test_episodes_end_as_they_should():
    tasks = tasks_from_text(*["A.G\n#..\n..."] * 3, world=LavaConfig(start="fixed", max_steps=5))
    agent = ScriptedAgent()
    episodes = play(agent, LAVA, tasks, seed=0)
    assert episodes.success.tolist() == [True, False, False]
    assert episodes.death.tolist() == [False, True, False]
    assert episodes.timeout.tolist() == [False, False, True]
    assert episodes.length.tolist() == [2, 1, 5]
    assert episodes.outcomes == "sdt"
    assert agent.firsts[:2] == [[True] * 3, [False, True, False]]


def test_only_the_first_episode_of_each_task_counts():
    class Relentless:
        """Fails the first episode and wins the second in one task, the other way round in the other; a third waits."""

        def __init__(self) -> None:
            self.episodes = np.array([-1, -1, -1])

        def act(self, timestep: TimeStep) -> Decision:
            self.episodes += timestep.first
            win = (self.episodes % 2 == [1, 0, 2]).tolist()
            return Decision(np.array([0 if win[0] else 1, 0 if win[1] else 1, 3]))

    tasks = tasks_from_text(*["AG.\n#..\n..."] * 3, world=LavaConfig(start="fixed", max_steps=6))
    episodes = play(Relentless(), LAVA, tasks, seed=0)
    assert episodes.success.tolist() == [False, True, False]
    assert episodes.death.tolist() == [True, False, False]
    assert episodes.length.tolist() == [1, 1, 6]


def test_the_seed_decides_the_slips():
    tasks = evaluation_tasks(LavaConfig(slip=0.3), 0.35, 200, seed=0)
    played = [play(OptimalAgent(LavaOracle(tasks.world)), LAVA, tasks, seed) for seed in (0, 0, 500)]
    assert (played[0].length == played[1].length).all()
    assert not (played[0].length == played[2].length).all()


def test_training_tasks_are_evaluated_from_the_configured_start():
    lengths = {}
    for start in ("fixed", "uniform"):
        world = LavaConfig(start="uniform", training_task_start=start)
        tasks = LAVA.training_evaluation(world, training_tasks(world, 200, seed=0), 200, seed=0)
        lengths[start] = play(OptimalAgent(LavaOracle(world)), LAVA, tasks, 0).length.mean()
    assert lengths["fixed"] > 15 > 13 > lengths["uniform"]


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
    tasks = evaluation_tasks(LavaConfig(dynamics=dynamics), difficulty, 1000, seed=0)
    assert play(OptimalAgent(LavaOracle(tasks.world)), LAVA, tasks, seed=0).success.all()


def test_the_random_agent_hardly_ever_crosses_the_lava():
    for difficulty in EVALUATION_DIFFICULTIES:
        tasks = evaluation_tasks(LavaConfig(), difficulty, 1000, seed=0)
        assert play(RandomAgent(4, np.random.default_rng(0)), LAVA, tasks, seed=0).success.mean() < 0.02


class Recorded:
    """A learner that is only looked at: remembers what its evaluators are shown at the beginning of episodes."""

    def __init__(self) -> None:
        self.seen: list[np.ndarray] = []

    def evaluator(self, rng):
        return self

    def act(self, timestep: TimeStep) -> Decision:
        if timestep.first.all():
            self.seen.append(timestep.observation.copy())
        return Decision(np.full(len(timestep.first), 3))


def looked_at(episodes: int, step: int = 0, **world) -> tuple[list[np.ndarray], dict]:
    config = configure("debug", "modelfree", world=LavaConfig(8, 8, **world))
    config = replace(config, evaluation=replace(config.evaluation, evaluation_episodes=episodes))
    learner = Recorded()
    results = evaluate_learner(learner, config, training_tasks(config.world, 3, seed=0), step)
    return learner.seen, results


def scenes(observations: np.ndarray) -> set[bytes]:
    return {scenery_of(observation)[0].tobytes() for observation in observations}


def test_evaluation_during_training_looks_at_training_tasks_and_at_new_unseen_ones():
    tasks = training_tasks(LavaConfig(8, 8), 3, seed=0)
    known = scenes(tasks.observe(np.arange(3), tasks.table.start))
    seen, results = looked_at(6)
    assert list(results) == ["training", "0.25", "0.35", "0.45", "0.55"]
    assert scenes(seen[0]) == known  # six episodes of three tasks
    for unseen in seen[1:]:
        assert len(scenes(unseen)) == 6
        assert not scenes(unseen) & known
    later, _ = looked_at(6, step=100)
    assert not scenes(later[1]) & scenes(seen[1])
    again, _ = looked_at(6)
    assert all((one == two).all() for one, two in zip(seen, again, strict=True))


def test_training_tasks_may_be_evaluated_from_uniform_starts():
    own, _ = looked_at(30)
    uniform, _ = looked_at(30, training_task_start="uniform")
    starts = [{int((image[..., 0] == 10).argmax()) for image in seen[0]} for seen in (own, uniform)]
    assert len(starts[0]) <= 3 < 10 < len(starts[1])


def test_the_spread_of_difficulties_is_that_of_the_configuration():
    for spread, counts in ((0.0, 1), (0.05, 2)):
        seen, _ = looked_at(40, difficulty_spread=spread)
        assert len({int((scenery_of(image)[0] == 9).sum()) for image in seen[2]}) >= counts
        assert (len({int((scenery_of(image)[0] == 9).sum()) for image in seen[2]}) == 1) == (spread == 0.0)


@pytest.mark.parametrize("split", ["evaluation", "tuning"])
def test_evaluation_during_training_takes_the_split_of_the_configuration(split, monkeypatch):
    drawn, draw = [], LAVA.evaluation_tasks

    def recorded(world, name, count, seed, split="evaluation"):
        drawn.append(split)
        return draw(world, name, count, seed, split)

    monkeypatch.setattr(LAVA, "evaluation_tasks", recorded)
    config = configure("debug", "modelfree", world=LavaConfig(8, 8))
    config = replace(config, evaluation=replace(config.evaluation, evaluation_episodes=2, split=split))
    evaluate_learner(Recorded(), config, training_tasks(config.world, 3, seed=0), 0)
    assert drawn == 4 * [split]
