from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from skipper.agents.learning_core import WeightsEMA, named_rng
from skipper.agents.modelfree.agent import ModelFreeAgent
from skipper.agents.optimizer import contiguous_blocks
from skipper.agents.skipper.agent import SkipperAgent
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.replay.relabel import HindsightConfig
from skipper.training.loop import Loop
from skipper.training.settings import configure
from skipper.types import TimeStep, Transition

DEBUG = configure("debug", "skipper-regen")
CONFIG = replace(
    DEBUG,
    tasks=6,
    replay=HindsightConfig(capacity=2_000, all_pairs=True),
    learning=replace(DEBUG.learning, symmetries=True, target_update_every=400),
)
SPEC = environment_spec(CONFIG.world)


def test_streams_are_named():
    assert named_rng(0, "act").random() == named_rng(0, "act").random()
    assert len({named_rng(seed, name).random() for seed in (0, 1) for name in ("act", "sample")}) == 4


def transition(number: int, ends: bool) -> Transition:
    """The same numbered state in all environments."""
    states = np.full((CONFIG.environments, *SPEC.shape), number, np.uint8)
    flags, count = np.full(CONFIG.environments, ends), CONFIG.environments
    return Transition(states, np.full(count, number % 4), np.zeros(count), states + 1, flags, flags & False)


@pytest.mark.parametrize("all_pairs", [False, True])
def test_unfinished_episodes_and_the_stream_of_hindsight_are_saved(all_pairs):
    config = replace(CONFIG, replay=replace(CONFIG.replay, all_pairs=all_pairs))
    one, two = SkipperAgent(config, SPEC), SkipperAgent(replace(config, seed=5), SPEC)
    for number in range(5):
        one.observe(transition(number, number == 4))
    one.observe(transition(10, False))
    two.load_state_dict(one.state_dict())
    for which in (one, two):
        for number in (11, 12, 13):
            which.observe(transition(number, number == 13))
    left, right = (which.state_dict() for which in (one, two))
    assert len(one.core.store) == 2 * CONFIG.environments
    assert (left["core"]["store"]["rows"] == right["core"]["store"]["rows"]).all()
    assert left["sampler"].keys() == right["sampler"].keys()
    assert ("sample" in left["sampler"]) != all_pairs
    if not all_pairs:
        assert (left["sampler"]["sample"] == right["sampler"]["sample"]).all()


def test_episodes_of_a_task_share_a_number():
    agent = SkipperAgent(CONFIG, SPEC)
    tasks = training_tasks(CONFIG.world, CONFIG.tasks, CONFIG.seed)
    loop = Loop(agent, LavaVectorEnv(4, tasks=tasks), replace(CONFIG.learning, learning_starts=10**9), seed=0)
    while loop.step < 400:
        loop.advance()
    store, numbers = agent.core.store, {}
    for episode in store.numbers():
        scenery = SPEC.scene.scenery(store.observations(store.first[[episode]])).tobytes()
        assert numbers.setdefault(scenery, store.task[episode]) == store.task[episode]
    assert len(set(numbers.values())) == len(numbers) > 3


def test_the_average_follows_the_weights_and_forgets_the_beginning():
    network = nn.Linear(1, 1, bias=False)
    nn.init.constant_(network.weight, 5.0)
    average, blocks = WeightsEMA(network, 0.9), contiguous_blocks(network)
    expected = 5.0
    for update in range(1, 200):
        nn.init.constant_(network.weight, 1.0 + (-1.0) ** update)  # alternates around 1
        decay = min(0.9, update / (update + 10.0))
        expected = decay * expected + (1.0 - decay) * network.weight.item()
        average.update(blocks)
    assert average.network.weight.item() == pytest.approx(expected, abs=1e-5)
    assert average.network.weight.item() == pytest.approx(1.0, abs=0.06)
    assert not average.network.weight.requires_grad
    version = average.network.weight._version
    average.update(blocks)
    assert average.network.weight._version > version  # caches of the average notice


def test_evaluation_and_saved_weights_are_those_of_the_average():
    config = configure("debug", "modelfree")
    agent = ModelFreeAgent(replace(config, learning=replace(config.learning, ema_decay=0.99)), SPEC)
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
    plain = ModelFreeAgent(config, SPEC).core
    assert plain.evaluated is plain.network


def test_the_learning_rate_rises_over_the_warm_up_and_falls_over_the_second_half():
    settings = replace(CONFIG.learning, warmup_updates=4, final_learning_rate_fraction=0.5)
    core = SkipperAgent(replace(CONFIG, learning=settings, steps=1_000), SPEC).core
    rates = []
    for core.updates in range(6):
        rates.append(core.rate)
    assert rates == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    for steps, expected in ((500, 1.0), (750, 0.75), (1_000, 0.5), (2_000, 0.5)):
        core.steps = steps
        assert core.rate == pytest.approx(expected)
