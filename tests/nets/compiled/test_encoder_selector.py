"""Compiled partial states against the layers that they stand for."""

import numpy as np
import pytest
import torch
from skipper.nets.partial_states import PartialStates

from skipper.config import NetworkConfig, WorldConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import training_tasks
from skipper.nets.compiled.encoder_selector import SPLIT, StillPartialStates
from skipper.nets.layers import seeded_initialisation


def network(world: WorldConfig, **settings) -> PartialStates:
    """Weights as learning leaves them: normalisations do something, and nothing is zero."""
    with seeded_initialisation(0):
        built = PartialStates(NetworkConfig(embedding=8, partial_width=24, **settings), environment_spec(world))
        for parameter in built.parameters():
            parameter.data += 0.1 * torch.randn_like(parameter)
    return built


def states(world: WorldConfig, count: int) -> torch.Tensor:
    rng, tasks = np.random.default_rng(0), training_tasks(world, 3, seed=0)
    # Neighbours of the same scene, which differ in two cells, and of different ones.
    scene = np.sort(rng.integers(3, size=count))
    return torch.from_numpy(tasks.observe(scene, rng.integers(world.cells, size=count)))


@pytest.mark.parametrize("size", [(12, 12), (9, 11), (5, 5), (4, 10)])
@pytest.mark.parametrize("abstract", [True, False])
def test_it_is_the_same_function(size, abstract):
    world = WorldConfig(*size)
    layers, seen = network(world, spatial_abstraction=abstract), states(world, SPLIT + 5)
    torch.testing.assert_close(StillPartialStates(layers)(seen), layers(seen).detach(), rtol=1e-4, atol=1e-5)


def test_states_beside_a_state_do_not_change_it():
    world = WorldConfig(12, 12)
    still, seen = StillPartialStates(network(world)), states(world, 20)
    order = torch.from_numpy(np.random.default_rng(1).permutation(20))
    torch.testing.assert_close(still(seen[order]), still(seen)[order], rtol=1e-5, atol=1e-6)
    assert still(seen[:0]).shape == (0, 24)


def test_words_that_nobody_knows_are_refused():
    world = WorldConfig(6, 6)
    still, seen = StillPartialStates(network(world)), states(world, 2)
    seen[1, 3, 3, 0] = 255
    with pytest.raises(IndexError, match="vocabulary"):
        still(seen)


def test_new_weights_are_noticed():
    world = WorldConfig(6, 6)
    layers, seen = network(world), states(world, 5)
    still = StillPartialStates(layers)
    before = still(seen)
    with torch.no_grad():
        layers.select.value.weight.mul_(2.0)
        layers.encode.mix.widen.weight.mul_(0.5)
    assert (still(seen) - before).abs().max() > 1e-3
    torch.testing.assert_close(still(seen), layers(seen).detach(), rtol=1e-4, atol=1e-5)
