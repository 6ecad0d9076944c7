from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from skipper.agents.learning_core import Images, LearningCore, WeightAverage
from skipper.agents.modelfree import ModelFreeAgent
from skipper.agents.optimizer import Optimizer, side_by_side
from skipper.agents.skipper.agent import SkipperAgent
from skipper.config import LearningConfig, ReplayConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.nets.layers import WeightsWatch, seeded_initialisation
from skipper.presets import DEBUG
from skipper.training.loop import Loop
from skipper.types import TimeStep, oracle_of

CONFIG = replace(
    DEBUG,
    agent="skipper-regen",
    tasks=6,
    replay=ReplayConfig(capacity=2_000, all_pairs=True, other_episodes=0.2),
    learning=replace(DEBUG.learning, symmetries=True, target_update_every=400),
)
SPEC = environment_spec(CONFIG.world)


@pytest.fixture(scope="module")
def core() -> LearningCore:
    """With a few hundred steps of random walks in its memory."""
    agent = SkipperAgent(CONFIG, SPEC)
    tasks = training_tasks(CONFIG.world, CONFIG.tasks, CONFIG.seed)
    loop = Loop(agent, LavaVectorEnv(4, tasks=tasks), replace(CONFIG.learning, learning_starts=10**9), seed=0)
    while loop.step < 1_000:
        loop.advance()
    return agent.core


def assert_moves_are_true(before: np.ndarray, action: np.ndarray, after: np.ndarray) -> None:
    """One step leads from ``before`` to ``after``, by ``action``, unless the agent bumped into the border."""
    moved = (before != after).any((1, 2, 3))
    assert 0.4 < moved.mean() < 1.0
    best = oracle_of(SPEC).action_values(before[moved], after[moved]).argmax(-1)
    np.testing.assert_array_equal(best, action[moved])


def test_images_of_pairs_are_transitions_of_turned_tasks(core):
    pairs = core.sample_pairs()
    assert_moves_are_true(pairs.observation[pairs.source], pairs.action, pairs.observation[pairs.next])
    assert ((pairs.observation[pairs.next] == pairs.observation[pairs.target]).all((1, 2, 3)) == pairs.reached).all()


def test_images_of_samples_are_transitions_of_turned_tasks(core):
    originals = core.experience.replay.sample(64, 0.5, np.random.default_rng(0))
    samples = Images(CONFIG, SPEC).of_samples(originals, core.sample_rng)
    assert 0.5 < (samples.observation != originals.observation).any((1, 2, 3)).mean() < 1.0
    assert_moves_are_true(samples.observation, samples.action, samples.next_observation)


def test_a_task_keeps_its_image_until_the_next_period_and_all_images_occur(core):
    images, counts = Images(CONFIG, SPEC), np.zeros(8)
    pairs = core.experience.replay.sample_pairs(np.random.default_rng(0), 0.9)
    shown = {period: images.of_pairs(pairs, period).observation for period in range(64)}
    assert (shown[3] == images.of_pairs(pairs, 3).observation).all()
    for observation in shown.values():
        for which in range(8):
            image = SPEC.symmetries.images(pairs.observation[:1], np.array([which]))
            counts[which] += (image == observation[:1]).all()
    assert counts.min() >= 2
    assert counts.sum() == 64


def test_both_states_of_a_context_are_in_the_same_image(core):
    one, two = core.sample_contexts()
    tasks = training_tasks(CONFIG.world, CONFIG.tasks, CONFIG.seed)
    known = SPEC.scene.scenery(tasks.observe(np.arange(len(tasks)), tasks.table.start))
    turned = [not (SPEC.scene.scenery(one)[row] == known).all((1, 2)).any() for row in range(len(one))]
    assert 0.5 < np.mean(turned) < 1.0
    scenery = SPEC.scene.scenery
    assert (scenery(one) == scenery(two)).all()


@pytest.mark.parametrize("kind", [SkipperAgent, ModelFreeAgent])
def test_an_environment_without_symmetries_is_refused(kind):
    with pytest.raises(ValueError, match="offers its symmetries"):
        kind(CONFIG, SPEC._replace(symmetries=None))


def test_the_average_follows_the_weights_and_forgets_the_beginning():
    network = nn.Linear(1, 1, bias=False)
    nn.init.constant_(network.weight, 5.0)
    average, blocks = WeightAverage(network, 0.9), side_by_side(network)
    expected = 5.0
    for update in range(1, 200):
        nn.init.constant_(network.weight, 1.0 + (-1.0) ** update)  # to and fro around 1
        kept = min(0.9, update / (update + 10.0))
        expected = kept * expected + (1.0 - kept) * network.weight.item()
        average.update(blocks)
    assert average.network.weight.item() == pytest.approx(expected, abs=1e-5)
    assert average.network.weight.item() == pytest.approx(1.0, abs=0.06)
    assert not average.network.weight.requires_grad
    watch = WeightsWatch(average.network)
    average.update(blocks)
    assert watch.changed()  # what is remembered of the average must be forgotten


def test_evaluation_and_saved_weights_are_those_of_the_average():
    agent = ModelFreeAgent(replace(CONFIG, learning=replace(CONFIG.learning, ema_decay=0.99)), SPEC)
    assert agent.core.evaluated is not agent.core.network
    with torch.no_grad():
        for weight in agent.core.evaluated.parameters():
            weight.add_(torch.linspace(-0.2, 0.2, weight.numel()).reshape(weight.shape))
    for name, array in agent.weights().items():
        np.testing.assert_array_equal(array, agent.core.evaluated.state_dict()[name].numpy())
    step = TimeStep(*(SPEC.examples[:32],) * 2, np.ones(32, bool))
    best = agent.core.evaluated.expect(step.observation).argmax(-1)
    assert (best != agent.core.network.expect(step.observation).argmax(-1)).any()
    assert (agent.evaluator(np.random.default_rng(0)).act(step).action == best).mean() > 0.9
    plain = ModelFreeAgent(CONFIG, SPEC).core
    assert plain.evaluated is plain.network


def test_a_part_without_gradients_is_left_alone_and_the_others_are_stepped_as_ever():
    def parts() -> nn.ModuleDict:
        with seeded_initialisation(0):
            return nn.ModuleDict({"one": nn.Linear(3, 2), "two": nn.Linear(2, 4)})

    mine, plain = parts(), parts()
    config = LearningConfig(learning_rate=0.1, gradient_clip=0.5)
    optimizer = Optimizer(mine, config)
    adam = torch.optim.Adam(plain.parameters(), lr=0.1, eps=config.adam_epsilon)

    def loss(network: nn.ModuleDict, whole: bool) -> torch.Tensor:
        out = network["one"](torch.linspace(-1, 1, 3))
        return (network["two"](out) if whole else out).square().sum()

    for turn in range(6):
        optimizer.step(loss(mine, turn % 3 == 0))
        adam.zero_grad(set_to_none=True)
        loss(plain, turn % 3 == 0).backward()
        nn.utils.clip_grad_value_(plain.parameters(), 0.5)
        adam.step()
    for one, two in zip(mine.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, two)
    saved = optimizer.state_dict()
    assert (saved["one.weight"]["steps"], saved["two.weight"]["steps"]) == (6, 2)
    other = Optimizer(mine, config)
    early = other.state_dict()
    other.load_state_dict(saved)
    for name, moments in other.state_dict().items():
        for key, array in moments.items():
            np.testing.assert_array_equal(array, saved[name][key])
    other.load_state_dict(early)
    assert not other.state_dict()
