"""Partial states of a few scenes, with gradients, against the module that they are the twin of."""

import numpy as np
import pytest
import torch

from skipper.config import NetworkConfig
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import training_tasks
from skipper.nets.compiled.scene_encoder import find_cells, partial_states, supports
from skipper.nets.layers import ResidualBlock, seeded_initialisation
from skipper.nets.selector import LocalFieldSelector, PartialStates

SQUARE = LavaConfig(12, 12)


def network(world: LavaConfig, **settings) -> PartialStates:
    """Weights as learning leaves them: normalisations do something, and nothing is zero."""
    options = {"embedding": 8, "partial_width": 24, "linear_scores": True} | settings
    with seeded_initialisation(0):
        built = PartialStates(NetworkConfig(**options), environment_spec(world))
        for parameter in built.parameters():
            parameter.data += 0.1 * torch.randn_like(parameter)
    return built


def states(world: LavaConfig, tasks: list[int]) -> torch.Tensor:
    """States of numbered tasks, in each of which the agent is anywhere."""
    rng, known = np.random.default_rng(0), training_tasks(world, max(tasks) + 1, seed=0)
    return torch.from_numpy(known.observe(np.array(tasks), rng.integers(world.cells, size=len(tasks))))


def gradients(module: PartialStates, partial: torch.Tensor) -> dict[str, torch.Tensor]:
    """Of a sum in which every number has a weight of its own."""
    module.zero_grad()
    weights = torch.randn(partial.shape, generator=torch.Generator().manual_seed(0))
    (partial * weights).sum().backward()
    return {name: parameter.grad.clone() for name, parameter in module.named_parameters()}


def assert_same(module: PartialStates, seen: torch.Tensor, scene: list[int]) -> None:
    """Values, and gradients of all parameters."""
    found, expected = partial_states(module, seen, torch.tensor(scene)), module(seen)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    mine, theirs = gradients(module, found), gradients(module, expected)
    for name, gradient in theirs.items():
        scale = gradient.abs().max().clamp(min=1e-3)
        chooses = module.select.top > 1 or name not in ("select.query", "select.key.weight")
        assert scale > 1e-3 or not chooses, f"nothing is compared for {name}"
        torch.testing.assert_close(mine[name] / scale, gradient / scale, rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.parametrize("size", [(12, 12), (9, 11), (11, 7), (5, 5), (4, 10)])
@pytest.mark.parametrize("field", [3, 8])
def test_states_of_several_scenes(size, field):
    world, tasks = LavaConfig(*size), [0, 0, 2, 1, 0, 2, 2, 1, 0, 1] * 3
    assert_same(network(world, field_size=field), states(world, tasks), tasks)


def test_states_of_one_scene():
    assert_same(network(SQUARE), states(SQUARE, [0] * 20), [0] * 20)


def test_a_single_state():
    assert_same(network(SQUARE), states(SQUARE, [0]), [0])
    assert_same(network(SQUARE), states(SQUARE, [0]), [7])


@pytest.mark.parametrize("size", [(12, 12), (6, 9)])
def test_states_of_a_scene_may_differ_everywhere(size):
    world, tasks = LavaConfig(*size), list(range(12))
    seen = states(world, tasks)
    assert (seen[1:] != seen[:1]).any(-1).float().mean() > 0.2
    assert_same(network(world), seen, [0] * 12)


def test_numbers_of_scenes_do_not_matter():
    module, seen = network(SQUARE), states(SQUARE, [0, 1, 0, 1, 2, 2])
    numbered = ([0, 1, 0, 1, 2, 2], [5, 0, 5, 0, 9, 9], [0, 1, 2, 3, 4, 5], [1, 1, 0, 0, 1, 0])
    first, *others = (partial_states(module, seen, torch.tensor(scene)) for scene in numbered)
    for other in others:
        torch.testing.assert_close(other, first, rtol=1e-4, atol=1e-5)


def test_only_cells_around_differences_are_encoded_again():
    """Cells of the hidden layer differ next to a changed one, those of the encoding two cells away."""
    words = np.zeros((3, 7 * 9), np.int64)
    words[1, 3 * 9 + 4] = words[2, 0] = 1  # in the middle, and in a corner
    cells = find_cells(words, np.zeros(3, np.int64), 9, 2)
    assert len(cells.words) == 63 + 9 + 4
    assert len(cells.hidden) == len(cells.word) == 63 + 25 + 9
    assert (cells.cell[0] == np.arange(63)).all()
    for state, around in ((1, (slice(1, 6), slice(2, 7))), (2, (slice(0, 3), slice(0, 3)))):
        own = np.zeros((7, 9), bool)
        own[around] = True
        assert ((cells.cell[state] >= 63).reshape(7, 9) == own).all()
        assert (cells.word[cells.cell[state]] == words[state]).all()


def test_states_are_compared_with_the_first_one_of_their_own_scene():
    words = np.zeros((4, 7 * 9), np.int64)
    words[[1, 3]] = 1  # another scene
    words[3, 3 * 9 + 4] = 0
    cells = find_cells(words, np.array([0, 1, 0, 1]), 9, 2)
    assert len(cells.words) == 63 + 63 + 9
    assert len(cells.hidden) == 63 + 63 + 25
    assert (cells.cell[2] == cells.cell[0]).all()


class Renormalised(LocalFieldSelector):
    def forward(self, state: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.normalize(super().forward(state))


class OtherBlock(ResidualBlock):
    pass


def test_other_modules_are_not_supported():
    world = LavaConfig(6, 6)
    assert supports(network(world))
    assert not supports(network(world, linear_scores=False))
    assert not supports(network(world, spatial_abstraction=False))
    for part, kind in (("select", Renormalised), ("encode.mix", OtherBlock)):
        changed = network(world)
        changed.get_submodule(part).__class__ = kind
        assert not supports(changed)
    hooked = network(world)
    hooked.select.fields.register_forward_hook(lambda *_: None)
    assert not supports(hooked)
