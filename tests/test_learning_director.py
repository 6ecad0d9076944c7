"""Director's world model learns the dynamics of an empty board in a minute, and with a wrong KL target it does not."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from skipper.agents.director.accuracy import cell_accuracy
from skipper.agents.director.agent import DirectorAgent
from skipper.agents.director.layers import UniformNoise
from skipper.agents.director.world_model import to_tensors
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.training.loop import Loop
from skipper.training.settings import configure

EMPTY = LavaConfig(8, 8, difficulty=0.0, max_steps=32)
UPDATES = 1200


@cache
def accuracy(**model: float) -> dict[str, float]:
    """Of the agent's decoded cell after some updates of the world model alone, on random walks."""
    torch.set_num_threads(1)
    base = configure("fast", "director", world=EMPTY)
    sizes = {"picture_units": 128, "deterministic": 96, "units": 96, "latents": 8, "latent_classes": 8}
    config = replace(
        base,
        environments=32,
        model=replace(base.model, head_layers=1, head_units=32, **sizes | model),
        learning=replace(base.learning, learning_starts=10**9, learning_rate=2e-3),
    )
    spec = environment_spec(EMPTY)
    agent = DirectorAgent(config, spec)
    envs = LavaVectorEnv(config.environments, tasks=training_tasks(EMPTY, 1, seed=0))
    loop = Loop(agent, envs, config.learning, 0)
    while loop.step < 12_000:
        loop.advance()
    rng, updater, network = np.random.default_rng(0), agent._updater, agent.network
    for _ in range(UPDATES):
        batch = to_tensors(agent._sampler.sample(16, rng), spec, "cpu")
        result = network.world_model(batch, updater.noise.draw(*batch.reward.shape, network.random_numbers[2]))
        updater._step(network.world_model, result.loss)
    drawn = agent._sampler.sample(400, rng)
    return cell_accuracy(network.world_model, spec, drawn, UniformNoise(rng, "cpu"))


def test_the_world_model_knows_where_the_agent_goes():
    found = accuracy()
    assert found["cell_seen"] > 0.97
    assert found["cell_imagined_1"] > 0.85
    assert found["cell_imagined_4"] > 0.6


@pytest.mark.parametrize("target", [3.5])
def test_a_vague_prior_reconstructs_and_imagines_nothing(target):
    """The divergence that suits 32 latents of 32 classes leaves 8 of 8 vague, however good their reconstructions."""
    found = accuracy(kl_scale=0.0, kl_target=target)
    assert found["cell_seen"] > 0.9
    assert found["cell_imagined_4"] < 0.5
