"""Updates on another device than the CPU, checked without one.

Tensors of the device "meta" have shapes but no values. What works with them alone works on a graphics card, too.
(PyTorch's fake tensors would name that device, but a build without it cannot record their gradients.)
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from skipper.agents import optimizer
from skipper.agents.director.agent import DirectorAgent
from skipper.agents.director.world_model import to_tensors
from skipper.agents.hindsight import UpdateBatch
from skipper.agents.leap.update import LeapUpdater
from skipper.agents.learning_core import LearningCore
from skipper.agents.modelfree.agent import ValueNetwork
from skipper.agents.optimizer import Optimizer
from skipper.agents.registry import agent_kind
from skipper.agents.skipper.update import SkipperUpdater, bootstrap_targets
from skipper.config import LearningConfig
from skipper.envs.registry import find_family
from skipper.nets.estimators import LeapNetwork, SkipperNetwork
from skipper.nets.heads import expect_pairs
from skipper.nets.layers import observations_tensor
from skipper.training.loop import Loop
from skipper.training.settings import configure

FAMILY, DEVICE = find_family("lava"), "meta"


class OnDevice(TorchDispatchMode):
    """Notes all operations on arrays of numbers on the CPU; to send them to the device is allowed."""

    def __init__(self) -> None:
        super().__init__()
        self.left: list[str] = []

    def __torch_dispatch__(self, func, _types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        sent = str(func).startswith(("aten._to_copy", "aten.lift_fresh", "aten.detach"))
        if not sent and any(t.device.type == "cpu" and t.is_floating_point() and t.ndim for t in tensors):
            self.left.append(str(func))
        return result


def with_experience(agent: str):
    """An agent of the preset "paper" on the CPU, with a few episodes."""
    config = configure("paper", agent)
    tasks = FAMILY.training_tasks(config.world, 4, 0)
    spec = FAMILY.spec(config.world, tasks)
    learner = agent_kind(agent).load().train(config, spec)
    envs = FAMILY.vector_env(config.environments, tasks, config.world)
    loop = Loop(learner, envs, replace(config.learning, learning_starts=10**9), 0)
    while loop.all_steps < 320:
        loop.advance()
    return replace(config, device=DEVICE), spec, learner


@pytest.fixture
def unchecked(monkeypatch):
    """These tensors have no values, so none can be found not to be finite."""
    monkeypatch.setattr(optimizer, "finite_value", lambda _: 0.0)
    monkeypatch.setattr(optimizer, "check_gradients", lambda _: None)


@pytest.mark.parametrize("across", [False, True])
def test_an_update_of_director(across, unchecked):
    config, spec, learner = with_experience("director")
    learner._sampler._across = across
    batch = to_tensors(learner._sampler.sample(16, np.random.default_rng(0)), spec, "cpu")
    agent = DirectorAgent(config, spec)
    assert (batch.first is not None) == across
    there = type(batch)(*(column if column is None else column.to(DEVICE) for column in batch))
    with OnDevice() as watch:
        metrics = agent._updater.update(there)
    assert {value.device.type for value in metrics.values()} == {DEVICE}
    assert watch.left == []


@pytest.mark.parametrize("agent", ["skipper-regen", "leap-suppress"])
def test_an_update_of_an_agent_with_targets(agent, unchecked):
    config, spec, learner = with_experience(agent)
    draw, rate = learner._batches.draw, 1.0
    hindsight, samples = draw.sample()
    real, contexts = len(hindsight.action), draw.contexts(hindsight)
    hindsight = draw.with_imagined_targets(hindsight)
    network, updater = (SkipperNetwork, SkipperUpdater) if agent.startswith("skipper") else (LeapNetwork, LeapUpdater)
    core = LearningCore(config, spec, lambda: network(config, spec))
    frozen, there = core.target_network.estimators, hindsight.to(DEVICE)
    with OnDevice() as watch:
        if network is SkipperNetwork:
            bootstrap = bootstrap_targets(frozen, hindsight, frozen.partial)
        else:
            pairs = (hindsight.encode_next(frozen.partial), hindsight.next, hindsight.target)
            bootstrap = expect_pairs(frozen.distance, *pairs)
        weight = torch.from_numpy(samples.weight).to(DEVICE)
        batch = UpdateBatch(there, real, bootstrap, None, weight, contexts, None, 0, rate)
        loss, losses, _ = updater(config, core.online).total(batch)
        core.online.step(loss, rate)
        generated = core.network.generator.losses(*contexts)
        core.online.step(torch.stack(list(generated.values())).sum(), rate)
        core.online.update_average()
    assert {each.device.type for each in [*losses.values(), *generated.values(), *core.network.parameters()]} == {
        DEVICE
    }
    assert watch.left == []


def test_the_network_and_the_step_of_modelfree(unchecked):
    config, spec, learner = with_experience("modelfree")
    batch = learner.core.sample(learner._sampler)
    core = LearningCore(config, spec, lambda: ValueNetwork(config.network, spec))
    with OnDevice() as watch:
        logits = core.network(observations_tensor(batch.observation))
        core.online.step(logits.mean(), 1.0)
    assert logits.device.type == DEVICE
    assert watch.left == []


@pytest.mark.parametrize("clip", [0.0, 0.5])
def test_the_step_on_a_device_is_that_of_the_kernel(clip):
    generator = torch.Generator().manual_seed(0)
    config, networks = LearningConfig(update_clip=clip, gradient_clip=0.1), []
    for _ in range(2):
        networks.append(torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Linear(4, 3)))
    networks[1].load_state_dict(networks[0].state_dict())
    one, two = (Optimizer(network, config) for network in networks)
    for size in (1.0, 1.0, 20.0, 1.0):
        x = size * torch.randn(7, 5, generator=generator)
        one.step(networks[0](x).square().mean(), 0.5)
        networks[1](x).square().mean().backward()
        for index, block in enumerate(two.blocks):
            moments = two._moments.setdefault(index, optimizer.Moments(*torch.zeros(2, len(block.vector)), steps=0))
            moments.steps += 1
            settings = (
                0.5 * config.learning_rate / (1 - 0.9**moments.steps),
                1 - 0.999**moments.steps,
                config.adam_epsilon,
                config.gradient_clip,
            )
            vectors = (block.vector, block.gradient(), moments.mean, moments.square)
            optimizer._adam_on_device(*vectors, block.slices(), settings, clip)
        networks[1].zero_grad()
    for first, second in zip(networks[0].parameters(), networks[1].parameters(), strict=True):
        np.testing.assert_allclose(first.detach(), second.detach(), rtol=1e-4, atol=1e-7)
