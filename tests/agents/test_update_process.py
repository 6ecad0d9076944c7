import gc
import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch

from skipper.agents.optimizer import NotFiniteError
from skipper.agents.skipper.agent import SkipperAgent
from skipper.agents.skipper.config import SkipperConfig
from skipper.agents.update_process import UpdaterProcess
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.replay.relabel import HindsightConfig
from skipper.runtime.threads import configure_threads
from skipper.training.loop import Loop
from skipper.training.settings import configure

DEBUG = configure("debug", "skipper-regen")
CONFIG = replace(
    DEBUG,
    threads=2,
    replay=HindsightConfig(capacity=1_000, all_pairs=True, other_episodes=0.2),
    generator=replace(DEBUG.generator, generator_width=4, generator_every=3, learned_goal=True),
    learning=replace(
        DEBUG.learning,
        steps_per_update=1.0,
        delusion_scale=0.25,
        act_with_target_network=True,
        training_targets="random",
        ema_decay=0.9,
    ),
)


def apart(config: SkipperConfig) -> SkipperConfig:
    return replace(config, learning=replace(config.learning, updater_process=True))


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    configure_threads(1)
    yield
    torch.set_num_threads(before)


def loop_of(config: SkipperConfig) -> Loop:
    agent = SkipperAgent(config, environment_spec(config.world))
    tasks = training_tasks(config.world, config.tasks, config.seed)
    return Loop(agent, LavaVectorEnv(config.environments, tasks=tasks), config.learning, seed=0)


def process_of(loop: Loop) -> UpdaterProcess:
    updater = loop.learner._updater
    assert isinstance(updater, UpdaterProcess)
    return updater


def test_learning_apart_changes_nothing():
    here, there = loop_of(CONFIG), loop_of(apart(CONFIG))
    process_of(there)
    one, two = [], []
    while here.step < 600:
        one += here.advance()
        two += there.advance()  # nobody looks at them yet, so that updates are under way while the agent acts
    assert one == [dict(metrics) for metrics in two]
    assert here.updates > 350
    for name, array in here.learner.weights().items():
        np.testing.assert_array_equal(array, there.learner.weights()[name])


def test_variants_that_practise_learn_the_same():
    once, *others = (
        loop_of(replace(CONFIG, planning=replace(CONFIG.planning, **changes)))
        for changes in ({"regenerate": False}, {"replan": "step"}, {"always_goal": True})
    )
    while once.step < 500:
        found = once.advance()
        assert all(found == other.advance() for other in others)
    assert once.updates > 250
    for name, array in once.learner.weights().items():
        assert all((array == other.learner.weights()[name]).all() for other in others)


def test_learning_apart_goes_on_from_a_saved_state():
    loop, other = loop_of(apart(CONFIG)), loop_of(apart(CONFIG))
    while loop.step < 400:
        loop.advance()
    other.load_state_dict(loop.state_dict())
    for _ in range(60):
        assert [dict(metrics) for metrics in loop.advance()] == [dict(metrics) for metrics in other.advance()]
    for name, array in loop.learner.weights().items():
        np.testing.assert_array_equal(array, other.learner.weights()[name])


def test_with_one_thread_there_is_one_process():
    loop = loop_of(replace(apart(CONFIG), threads=1))
    assert not isinstance(loop.learner._updater, UpdaterProcess)


def test_what_goes_wrong_in_the_other_process_is_seen_here():
    loop = loop_of(apart(CONFIG))
    while loop.step < 300:
        loop.advance()
    loop.learner._updater.synchronise()
    with torch.no_grad():
        next(loop.learner.core.network.parameters()).fill_(float("nan"))
    process_of(loop).restart()
    with pytest.raises(NotFiniteError, match="the loss became nan"):
        dict(loop.learner.learn())


def test_a_process_that_died_is_told_of():
    loop = loop_of(apart(CONFIG))
    while loop.step < 300:
        loop.advance()
    os.kill(process_of(loop)._process.pid, signal.SIGKILL)
    with pytest.raises(ChildProcessError, match="the updater process has ended, with exit code -9"):
        dict(loop.learner.learn())


def test_the_process_ends_with_its_agent_and_not_before():
    loop = loop_of(apart(CONFIG))
    process = process_of(loop)._process
    for number in (signal.SIGINT, signal.SIGTERM):  # meant for the run, which wants to save first
        process.send_signal(number)
    while loop.step < 300:
        loop.advance()
    assert loop.updates > 50
    loop.learner.weights()
    del loop
    gc.collect()
    assert process.wait(timeout=10) == 0


def test_the_generator_learns_in_its_turn():
    loop = loop_of(apart(CONFIG))
    metrics = []
    while loop.step < 300:
        metrics += loop.advance()
    assert len(metrics) > 50
    assert [("reconstruction" in found) for found in metrics] == [turn % 3 == 0 for turn in range(len(metrics))]


def test_learning_apart_needs_what_is_known_ahead():
    for changed in (
        replace(CONFIG, replay=HindsightConfig(capacity=1_000)),
        replace(CONFIG, learning=replace(CONFIG.learning, act_with_target_network=False)),
    ):
        with pytest.raises(ValueError, match="updater_process needs all_pairs, and act_with"):
            apart(changed)
