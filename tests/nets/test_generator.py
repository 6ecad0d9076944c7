from functools import partial

import numpy as np
import pytest
import torch

from skipper.agents.skipper.vertices import distinct_codes
from skipper.config import GeneratorConfig
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import training_tasks
from skipper.nets.generator import (
    CheckpointGenerator,
    Fuser,
    bits_to_codes,
    codes_to_bits,
    cyclic_weight,
    straight_through,
)
from skipper.nets.layers import seeded_initialisation

CONFIG = GeneratorConfig(generator_width=8)


def generator(world: LavaConfig, config: GeneratorConfig = CONFIG) -> CheckpointGenerator:
    with seeded_initialisation(0):
        return CheckpointGenerator(config, environment_spec(world))


def observations(world: LavaConfig, count: int) -> torch.Tensor:
    tasks = training_tasks(world, 3, seed=0)
    rng = np.random.default_rng(0)
    return torch.from_numpy(tasks.observe(rng.integers(3, size=count), rng.integers(world.cells, size=count)))


@pytest.mark.parametrize("size", [(12, 12), (7, 5), (3, 3)])
def test_shapes(size):
    world = LavaConfig(*size)
    module, seen = generator(world), observations(world, 5)
    assert module.description(seen).shape == (5, 6, 2)
    assert module.codes(seen).shape == (5,)
    assert module(seen, torch.zeros(5, 4, dtype=torch.long)).shape == (5, 4, world.cells)


def test_the_papers_shapes():
    module = generator(LavaConfig(), GeneratorConfig())
    assert module.description.bits.in_features == 128
    assert module.fuse.spread.weight.shape == (128, 12)
    assert module.fuse.unfold.weight.shape == (128, 32, 12, 12)
    assert module.fuse.mix.widen.weight.shape == (128, 64, 3, 3)


def layer_by_layer(fuser: Fuser, context: torch.Tensor, bits: torch.Tensor) -> torch.Tensor:
    """The naive twin: residual block, then one logit per cell."""
    return fuser.locate(fuser.mix(torch.cat([context, fuser.describe(bits)], 1))).flatten(1)


def test_the_folded_fuser_equals_the_layers_one_after_the_other_with_gradients():
    world = LavaConfig(7, 6)
    module = generator(world).fuse
    context = torch.randn(5, 8, 7, 6)
    bits = straight_through(torch.randn(5, 6, 2))
    results = []
    for form in (partial(layer_by_layer, module), module):
        module.zero_grad()
        leaf = context.clone().requires_grad_()
        out = form(leaf, bits)
        (out * torch.linspace(-1, 1, out.numel()).reshape(out.shape)).sum().backward()
        results.append([out.detach(), leaf.grad, *(parameter.grad.clone() for parameter in module.parameters())])
    for naive, folded in zip(*results, strict=True):
        torch.testing.assert_close(naive, folded, atol=1e-4, rtol=1e-4)


def test_imagining_many_codes_equals_fusing_them_one_by_one():
    world = LavaConfig(7, 6)
    module, seen = generator(world), observations(world, 3)
    codes = torch.from_numpy(distinct_codes(3, 10, 6, np.random.default_rng(0)))
    logits = module(seen, codes).detach()
    for row in range(3):
        for place in range(10):
            alone = module.fuse(module.context(seen[row : row + 1]), codes_to_bits(codes[row, place][None], 6))
            torch.testing.assert_close(logits[row, place], alone[0].detach(), atol=1e-5, rtol=1e-4)


def test_codes_and_bits_are_each_others_inverse():
    codes = torch.arange(64)
    bits = codes_to_bits(codes, 6)
    assert bits.shape == (64, 6, 2)
    assert (bits_to_codes(bits.argmax(-1)) == codes).all()
    assert bits_to_codes(torch.tensor([[1, 0, 1]])).tolist() == [5]


def test_straight_through_is_hard_forward_and_soft_backward():
    logits = torch.tensor([[1.0, 2.0]], requires_grad=True)
    out = straight_through(logits)
    assert out.tolist() == [[0.0, 1.0]]
    out[0, 1].backward()
    soft = torch.tensor([1.0, 2.0]).softmax(-1)
    torch.testing.assert_close(logits.grad, torch.stack([-soft[0] * soft[1], soft[0] * soft[1]])[None])


def test_distinct_codes():
    codes = distinct_codes(200, 30, 6, np.random.default_rng(0))
    assert all(len(set(row)) == 30 for row in codes.tolist())
    counts = np.bincount(codes.reshape(-1), minlength=64)
    assert counts.min() > 60
    with pytest.raises(ValueError, match="3 bits give only 8 codes"):
        distinct_codes(1, 9, 3, np.random.default_rng(0))


def test_the_entropy_weight_rises_and_stays():
    assert [cyclic_weight(update, 100) for update in (0, 25, 50, 99, 100)] == [0.0, 0.5, 1.0, 1.0, 0.0]


def test_entropy_is_worst_for_bits_that_never_change():
    module = generator(LavaConfig(5, 5))
    seen = observations(LavaConfig(5, 5), 4)
    cell = torch.zeros(4, dtype=torch.long)
    with torch.no_grad():
        module.description.bits.weight.zero_()
        module.description.bits.bias.zero_()
        even = module.losses(seen, seen, cell)["entropy"]
        module.description.bits.bias[::2] = 100.0
        sure = module.losses(seen, seen, cell)["entropy"]
    torch.testing.assert_close(even, torch.zeros(4), atol=1e-6, rtol=0)
    torch.testing.assert_close(sure, torch.full((4,), 6 * float(np.log(2))))


def test_bits_that_are_certain_still_have_a_gradient():
    world = LavaConfig(5, 5)
    module, seen = generator(world), observations(world, 4)
    with torch.no_grad():
        module.description.bits.bias[::2] += 200.0  # the other side of every bit has a share of 0
        assert module.description(seen).softmax(-1).min() == 0.0
    module.losses(seen, seen, torch.zeros(4, dtype=torch.long))["entropy"].sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in module.description.parameters())


def test_it_learns_to_say_where_the_agent_is():
    world = LavaConfig(5, 5, difficulty=0.3)
    tasks = training_tasks(world, 4, seed=0)
    module = generator(world, GeneratorConfig(generator_width=16))
    adam = torch.optim.Adam(module.parameters(), lr=2e-3)
    rng = np.random.default_rng(0)
    for _ in range(600):
        rows, cells, others = rng.integers(4, size=64), rng.integers(25, size=64), rng.integers(25, size=64)
        seen, context = (torch.from_numpy(tasks.observe(rows, places)) for places in (cells, others))
        losses = module.losses(seen, context, torch.from_numpy(cells))
        adam.zero_grad()
        (losses["reconstruction"] + 2.5e-4 * losses["entropy"]).mean().backward()
        adam.step()
    rows, cells, others = rng.integers(4, size=300), rng.integers(25, size=300), rng.integers(25, size=300)
    seen, context = (torch.from_numpy(tasks.observe(rows, places)) for places in (cells, others))
    found = module(context, module.codes(seen)[:, None])[:, 0].argmax(-1).numpy()
    assert (found == cells).mean() > 0.9
