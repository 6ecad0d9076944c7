import threading
from dataclasses import replace

import numpy as np
import pytest

from skipper.agents.skipper import SkipperAgent
from skipper.config import ReplayConfig, RunConfig
from skipper.envs.spec import environment_spec
from skipper.envs.tasks import training_tasks
from skipper.envs.vector import LavaVectorEnv
from skipper.presets import DEBUG
from skipper.training.loop import Loop

CONFIG = replace(
    DEBUG,
    agent="skipper-regen",
    replay=ReplayConfig(capacity=1_000, all_pairs=True, other_episodes=0.2),
    generator=replace(DEBUG.generator, generator_width=4, generator_every=3),
    learning=replace(DEBUG.learning, steps_per_update=1.0, delusion_scale=0.25, frozen_acting=True, practice=True),
)


def loop_of(config: RunConfig) -> Loop:
    agent = SkipperAgent(config, environment_spec(config.world))
    tasks = training_tasks(config.world, config.tasks, config.seed)
    return Loop(agent, LavaVectorEnv(config.environments, tasks=tasks), config.learning, seed=0)


def ahead(config: RunConfig) -> RunConfig:
    return replace(config, learning=replace(config.learning, prepare_ahead=True))


def test_preparing_ahead_changes_nothing():
    loops = [loop_of(config) for config in (CONFIG, ahead(CONFIG))]
    while loops[0].step < 400:
        one, two = (loop.advance() for loop in loops)
        assert one == two
    assert loops[0].updates > 150
    for name, array in loops[0].learner.weights().items():
        np.testing.assert_array_equal(array, loops[1].learner.weights()[name])


def test_what_was_announced_must_come():
    loop = loop_of(ahead(CONFIG))
    while loop.step < 300:
        loop.advance()
    loop.learner.learn(more=True)
    with pytest.raises(RuntimeError, match="another update was announced"):
        loop.advance()
    with pytest.raises(RuntimeError, match="another update was announced"):
        loop.state_dict()
    loop.learner.learn()
    loop.advance()


def test_what_goes_wrong_ahead_is_not_lost(monkeypatch):
    loop = loop_of(ahead(CONFIG))
    while loop.step < 300:
        loop.advance()

    sample, threads = loop.learner.core.sample_pairs, []

    def fail_ahead() -> object:
        threads.append(threading.current_thread())
        if len(threads) == 2:
            raise ValueError("no episodes")
        return sample()

    monkeypatch.setattr(loop.learner.core, "sample_pairs", fail_ahead)
    loop.learner.learn(more=True)
    with pytest.raises(ValueError, match="no episodes"):
        loop.learner.learn()
    assert threads[0] is threading.main_thread()
    assert threads[1] is not threading.main_thread()


def test_the_generator_learns_in_its_turn():
    loop = loop_of(ahead(CONFIG))
    metrics = []
    while loop.step < 300:
        metrics += loop.advance()
    assert len(metrics) > 50
    assert [("reconstruction" in found) for found in metrics] == [turn % 3 == 0 for turn in range(len(metrics))]


def test_priorities_are_not_known_ahead():
    with pytest.raises(ValueError, match="prepare_ahead needs all_pairs"):
        ahead(replace(CONFIG, replay=ReplayConfig(capacity=1_000)))
