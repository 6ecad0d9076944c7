"""Compiled partial states against the module that they are the twin of."""

import numpy as np
import pytest
import torch

from skipper.config import NetworkConfig
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import training_tasks
from skipper.nets.compiled.encoder_selector import CompiledPartialStates, supports
from skipper.nets.layers import seeded_initialisation
from skipper.nets.selector import LocalFieldSelector, PartialStates


def network(world: LavaConfig, **settings) -> PartialStates:
    """Weights as learning leaves them: normalisations do something, and nothing is zero."""
    with seeded_initialisation(0):
        built = PartialStates(NetworkConfig(embedding=8, partial_width=24, **settings), environment_spec(world))
        for parameter in built.parameters():
            parameter.data += 0.1 * torch.randn_like(parameter)
    return built


def states(world: LavaConfig, count: int) -> torch.Tensor:
    rng, tasks = np.random.default_rng(0), training_tasks(world, 3, seed=0)
    # Neighbours of the same scene, which differ in two cells, and of different ones.
    scene = np.sort(rng.integers(3, size=count))
    return torch.from_numpy(tasks.observe(scene, rng.integers(world.cells, size=count)))


@pytest.mark.parametrize("size", [(12, 12), (9, 11), (5, 5), (4, 10)])
@pytest.mark.parametrize("linear", [False, True])
def test_it_is_the_same_function(size, linear):
    world = LavaConfig(*size)
    module, seen = network(world, linear_scores=linear), states(world, 100)
    assert supports(module)
    torch.testing.assert_close(CompiledPartialStates(module)(seen), module(seen).detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("linear", [False, True])
def test_small_fields_of_grids_that_are_not_square(linear):
    """Fields lie at many places, of which the states choose different ones."""
    world = LavaConfig(7, 11)
    module, seen = network(world, linear_scores=linear, field_size=3, fields=2), states(world, 100)
    assert len(module.select.select(module.encode(seen)).fields.unique()) > 5
    torch.testing.assert_close(CompiledPartialStates(module)(seen), module(seen).detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("linear", [False, True])
def test_the_other_states_of_a_batch_do_not_matter(linear):
    world = LavaConfig(12, 12)
    compiled, seen = CompiledPartialStates(network(world, linear_scores=linear)), states(world, 20)
    order = torch.from_numpy(np.random.default_rng(1).permutation(20))
    torch.testing.assert_close(compiled(seen[order]), compiled(seen)[order], rtol=1e-5, atol=1e-6)
    assert compiled(seen[:0]).shape == (0, 24)


def test_words_outside_the_vocabulary_are_refused():
    world = LavaConfig(6, 6)
    compiled, seen = CompiledPartialStates(network(world)), states(world, 2)
    seen[1, 3, 3, 0] = 255
    with pytest.raises(IndexError, match="vocabulary"):
        compiled(seen)


class Renormalised(LocalFieldSelector):
    def forward(self, state: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.normalize(super().forward(state))


def test_changed_modules_are_not_supported():
    world = LavaConfig(6, 6)
    assert supports(network(world))
    assert not supports(network(world, spatial_abstraction=False))
    changed = network(world)
    changed.select.__class__ = Renormalised
    assert not supports(changed)
    for name, kind in (("before", torch.nn.Identity()), ("after", torch.nn.LayerNorm(24, eps=1e-3))):
        changed = network(world)
        setattr(changed.select, name, kind)
        assert not supports(changed)
    hooked = network(world)
    hooked.encode.mix.register_forward_hook(lambda *_: None)
    assert not supports(hooked)
