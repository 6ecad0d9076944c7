"""Symmetric images of experience are experience of symmetric tasks."""

from dataclasses import replace

import numpy as np
import pytest

from skipper.agents.director.agent import DirectorAgent
from skipper.agents.learning_core import SymmetricImages
from skipper.agents.modelfree.agent import ModelFreeAgent
from skipper.agents.skipper.agent import SkipperAgent
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.replay.relabel import HindsightConfig
from skipper.replay.windows import WindowConfig, WindowSampler
from skipper.training.loop import Loop
from skipper.training.settings import configure
from skipper.types import oracle_of

DEBUG = configure("debug", "skipper-regen")
CONFIG = replace(
    DEBUG,
    tasks=6,
    replay=HindsightConfig(capacity=2_000, other_episodes=0.2),
    learning=replace(DEBUG.learning, symmetries=True, target_update_every=400),
)
DIRECTOR = configure("debug", "director")
SPEC = environment_spec(CONFIG.world)


def with_experience(config, kind: type = SkipperAgent):
    """An agent with a few hundred steps of random walks in its store."""
    agent = kind(config, SPEC)
    tasks = training_tasks(config.world, config.tasks, config.seed)
    loop = Loop(agent, LavaVectorEnv(4, tasks=tasks), replace(config.learning, learning_starts=10**9), seed=0)
    while loop.step < 1_000:
        loop.advance()
    return agent


@pytest.fixture(scope="module")
def by_priority() -> SkipperAgent:
    return with_experience(CONFIG)


@pytest.fixture(scope="module")
def with_all_pairs() -> SkipperAgent:
    return with_experience(replace(CONFIG, replay=replace(CONFIG.replay, all_pairs=True)))


def assert_moves_are_true(before: np.ndarray, action: np.ndarray, after: np.ndarray) -> None:
    """One step leads from ``before`` to ``after``, by ``action``, unless the agent bumped into the border."""
    moved = (before != after).any((1, 2, 3))
    assert 0.4 < moved.mean() < 1.0
    best = oracle_of(SPEC).action_values(before[moved], after[moved]).argmax(-1)
    np.testing.assert_array_equal(best, action[moved])


def test_images_of_pairs_are_transitions_of_symmetric_tasks(with_all_pairs):
    original = with_all_pairs._batches.draw.sampler.sample(np.random.default_rng(0))
    images = [SymmetricImages(CONFIG, SPEC).of_pairs(original, period) for period in range(8)]
    assert any((pairs.observation != original.observation).any() for pairs in images)
    for pairs in images:
        assert_moves_are_true(pairs.observation[pairs.source], pairs.action, pairs.observation[pairs.next])
        met = (pairs.observation[pairs.next] == pairs.observation[pairs.target]).all((1, 2, 3))
        assert (met == pairs.reached).all()


def test_images_of_samples_are_transitions_of_symmetric_tasks(by_priority):
    original = by_priority._batches.draw.sampler.sample(64, 0.5, np.random.default_rng(0))
    samples = SymmetricImages(CONFIG, SPEC).of_samples(original, np.random.default_rng(1))
    assert 0.5 < (samples.observation != original.observation).any((1, 2, 3)).mean() < 1.0
    assert_moves_are_true(samples.observation, samples.action, samples.next_observation)


def test_a_task_keeps_its_image_until_the_next_period_and_all_images_occur(with_all_pairs):
    images, counts = SymmetricImages(CONFIG, SPEC), np.zeros(8)
    pairs = with_all_pairs._batches.draw.sampler.sample(np.random.default_rng(0))
    shown = {period: images.of_pairs(pairs, period).observation for period in range(64)}
    assert (shown[3] == images.of_pairs(pairs, 3).observation).all()
    for observation in shown.values():
        for which in range(8):
            image = SPEC.symmetries.images(pairs.observation[:1], np.array([which]))
            counts[which] += (image == observation[:1]).all()
    assert counts.min() >= 2
    assert counts.sum() == 64


def share_of_images(states: np.ndarray) -> float:
    """How many of the states do not belong to a training task as it is."""
    tasks = training_tasks(CONFIG.world, CONFIG.tasks, CONFIG.seed)
    known = SPEC.scene.scenery(tasks.observe(np.arange(len(tasks)), tasks.table.start))
    return float(np.mean([not (each == known).all((1, 2)).any() for each in SPEC.scene.scenery(states)]))


def test_both_states_of_a_context_are_in_the_same_image(with_all_pairs):
    described, context, _ = with_all_pairs._batches.prepare().contexts
    assert 0.5 < share_of_images(described.numpy()) < 1.0
    assert (SPEC.scene.scenery(described.numpy()) == SPEC.scene.scenery(context.numpy())).all()


def test_updates_see_images(by_priority, with_all_pairs):
    assert 0.5 < share_of_images(by_priority._batches.prepare().hindsight.state.numpy()) < 1.0
    shares = [share_of_images(with_all_pairs._batches.prepare().hindsight.state.numpy()) for _ in range(20)]
    assert 0.5 < np.mean(shares) < 1.0


def test_windows_are_shown_in_one_image_of_each_task(with_all_pairs):
    store, images = with_all_pairs.core.store, with_all_pairs.core.images
    sampler = WindowSampler(store, WindowConfig(window_episodes=8), 0.99)
    plain, symmetries = sampler.sample(np.random.default_rng(0)), SPEC.symmetries
    shown = images.of_windows(plain, period=3)
    which = images._of_tasks(plain.task, 3)
    assert len(np.unique(which)) > 1
    assert all(len(np.unique(which[plain.task == task])) == 1 for task in np.unique(plain.task))
    for row, image in enumerate(which):
        expected = symmetries.images(plain.observation[row : row + 1], np.array([image]))
        assert (shown.observation[row] == expected[0]).all()
    assert (shown.action == symmetries.actions[which[plain.source], plain.action]).all()
    assert (images._of_tasks(plain.task, 4) != which).any()


def test_sequences_are_shown_in_one_random_image_each():
    plain = with_experience(DIRECTOR, DirectorAgent)._sampler.sample(64, np.random.default_rng(0))
    B, T = plain.action.shape  # noqa: N806
    shown = SymmetricImages(CONFIG, SPEC).of_sequences(plain, np.random.default_rng(1))
    changed = (shown.observation != plain.observation).any((2, 3, 4))  # (B, T)
    assert 0.5 < changed[:, 0].mean() < 1.0
    scenery = SPEC.scene.scenery(shown.observation.reshape(-1, *SPEC.shape)).reshape(B, T, -1)
    assert (scenery == scenery[:, :1]).all()
    before, after = (shown.observation[:, part].reshape(-1, *SPEC.shape) for part in (slice(None, -1), slice(1, None)))
    assert_moves_are_true(before, shown.action[:, 1:].ravel(), after)
    np.testing.assert_array_equal(shown.reward, plain.reward)


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        (SkipperAgent, CONFIG),
        (ModelFreeAgent, configure("fast", "modelfree")),
        (DirectorAgent, replace(DIRECTOR, learning=replace(DIRECTOR.learning, symmetries=True))),
    ],
)
def test_an_environment_without_symmetries_is_refused(kind, config):
    with pytest.raises(ValueError, match="offers its symmetries"):
        kind(config, SPEC._replace(symmetries=None))
