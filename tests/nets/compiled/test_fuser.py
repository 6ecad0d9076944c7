"""The compiled fuser against the generator that it is the twin of."""

import numpy as np
import pytest
import torch

from skipper.agents.skipper.vertices import distinct_codes
from skipper.config import GeneratorConfig
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import training_tasks
from skipper.nets.compiled.fuser import CompiledFuser, supports
from skipper.nets.generator import CheckpointGenerator, Fuser
from skipper.nets.layers import seeded_initialisation


def generator(world: LavaConfig, **settings) -> CheckpointGenerator:
    with seeded_initialisation(0):
        return CheckpointGenerator(GeneratorConfig(generator_width=8, **settings), environment_spec(world))


@pytest.mark.parametrize("size", [(12, 12), (7, 5), (3, 3)])
def test_it_is_the_same_function(size):
    world, rng = LavaConfig(*size), np.random.default_rng(0)
    tasks, module = training_tasks(world, 3, seed=0), generator(world)
    states = torch.from_numpy(tasks.observe(rng.integers(3, size=5), rng.integers(world.cells, size=5)))
    codes = torch.from_numpy(distinct_codes(5, 10, 6, rng))
    assert supports(module)
    torch.testing.assert_close(CompiledFuser(module)(states, codes), module(states, codes).detach())


class Sharpened(Fuser):
    def forward(self, context: torch.Tensor, bits: torch.Tensor) -> torch.Tensor:
        return 2.0 * super().forward(context, bits)


class Constant(CheckpointGenerator):
    def forward(self, observation: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(super().forward(observation, codes))


def test_changed_generators_are_not_supported():
    world = LavaConfig(5, 5)
    assert supports(generator(world, flat_description=True))  # the description is not part of the twin
    changed = generator(world)
    changed.fuse.__class__ = Sharpened
    assert not supports(changed)
    changed = generator(world)
    changed.__class__ = Constant
    assert not supports(changed)
    changed = generator(world)
    changed.context.forward = lambda observation: torch.zeros(len(observation), 8, 5, 5)
    assert not supports(changed)
