import copy
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from skipper.agents.director.config import DirectorLearningConfig
from skipper.agents.director.layers import mlp
from skipper.agents.director.optimizer import NetworkOptimizer
from skipper.agents.optimizer import NotFiniteError
from skipper.nets.layers import seeded_initialisation

CONFIG = DirectorLearningConfig(learning_rate=0.05, gradient_clip=0.7, weight_decay=0.3)


def network() -> nn.Sequential:
    with seeded_initialisation(0):
        return mlp(5, 2, 19, 3)


def losses(steps: int) -> list[Callable[[nn.Module], torch.Tensor]]:
    """Losses whose gradients are now smaller, now larger than what is clipped."""
    generator = torch.Generator().manual_seed(0)
    inputs = [(0.01, 1, 9)[step % 3] * torch.randn(7, 5, generator=generator) for step in range(steps)]
    return [lambda each, x=x: (each(x) - 1).square().sum() * x.abs().mean() for x in inputs]


def test_it_is_pytorchs_adamw_with_clipped_gradients():
    mine, plain = network(), network()
    optimizer = NetworkOptimizer(mine, CONFIG)
    groups = [[each for each in plain.parameters() if (each.ndim > 1) == decays] for decays in (True, False)]
    decays = [{"params": groups[0], "weight_decay": 0.3}, {"params": groups[1], "weight_decay": 0.0}]
    adam = torch.optim.AdamW(decays, lr=0.05, eps=CONFIG.adam_epsilon)
    clipped = []
    for loss in losses(9):
        optimizer.step(loss(mine))
        adam.zero_grad()
        loss(plain).backward()
        clipped.append(float(nn.utils.clip_grad_norm_(plain.parameters(), 0.7)) > 0.7)
        adam.step()
    assert 0 < sum(clipped) < 9
    for one, two in zip(mine.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)


def test_the_step_on_a_device_is_that_of_the_kernel():
    one, two = network(), network()
    kernel, device = NetworkOptimizer(one, CONFIG), NetworkOptimizer(two, CONFIG)
    device._on_cpu = False
    for loss in losses(6):
        kernel.step(loss(one))
        device.step(loss(two))
    for first, second in zip(one.parameters(), two.parameters(), strict=True):
        torch.testing.assert_close(first, second, rtol=1e-4, atol=1e-5)


def test_it_goes_on_exactly_where_its_state_was_taken():
    one, two = network(), network()
    optimizer, other = NetworkOptimizer(one, CONFIG), NetworkOptimizer(two, CONFIG)
    first, second, third = losses(3)
    optimizer.step(first(one))
    optimizer.step(second(one))
    saved = optimizer.state_dict()
    kept = copy.deepcopy(saved)
    two.load_state_dict(one.state_dict())
    other.load_state_dict(saved)
    optimizer.step(third(one))
    other.step(third(two))
    for before, after in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.equal(before, after)
    for name, entries in saved.items():  # neither optimiser has changed it
        for key in entries:
            np.testing.assert_array_equal(entries[key], kept[name][key])


def test_it_goes_on_from_the_state_of_pytorchs():
    mine, plain = network(), network()
    adam = torch.optim.AdamW(plain.parameters(), lr=0.05, eps=CONFIG.adam_epsilon, weight_decay=0.0)
    optimizer = NetworkOptimizer(mine, replace(CONFIG, weight_decay=0.0, gradient_clip=1e6))
    for turn, loss in enumerate(losses(6)):
        if turn == 3:
            mine.load_state_dict(plain.state_dict())
            named = plain.named_parameters()
            optimizer.load_state_dict(
                {name: {k: v.numpy() for k, v in adam.state[each].items()} for name, each in named}
            )
        if turn >= 3:
            optimizer.step(loss(mine))
        adam.zero_grad()
        loss(plain).backward()
        adam.step()
    for one, two in zip(mine.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("on_cpu", [True, False])
def test_a_gradient_that_is_not_finite_changes_nothing(on_cpu):
    line = nn.Linear(2, 1, bias=False)
    optimizer, before = NetworkOptimizer(line, CONFIG), line.weight.detach().clone()
    optimizer._on_cpu = on_cpu
    with pytest.raises(NotFiniteError, match="gradient"):
        optimizer.step((line.weight - line.weight.detach()).abs().sqrt().sum())  # finite, with an infinite slope
    assert torch.equal(line.weight, before)
    (state,) = optimizer.state_dict().values()
    assert all(not entries.any() for entries in state.values())


def test_what_it_cannot_optimise_is_refused():
    line = nn.Linear(3, 2, bias=False)
    optimizer = NetworkOptimizer(line, CONFIG)
    with pytest.raises(AssertionError, match="no gradient"):
        optimizer.step(torch.zeros((), requires_grad=True))
    line.weight = nn.Parameter(torch.randn(3, 2).T)  # not contiguous: a kernel would change a copy of it
    with pytest.raises(RuntimeError, match="view"):
        NetworkOptimizer(line, CONFIG).step(line.weight.sum())


def test_gradients_of_any_memory_layout_are_learned_from():
    line = nn.Linear(3, 2, bias=False)
    slope, before = torch.tensor([[1.0, -2], [3, -4], [5, -6]]), line.weight.detach().clone()
    optimizer = NetworkOptimizer(line, DirectorLearningConfig(learning_rate=0.1, weight_decay=0.0))
    line.weight.grad = slope.T
    optimizer._step_on_cpu()
    np.testing.assert_allclose((before - line.weight.detach()).T, 0.1 * slope.sign(), rtol=1e-4)


def test_graphs_from_before_a_step_are_refused():
    line = nn.Linear(2, 1)
    optimizer, before = NetworkOptimizer(line, CONFIG), line(line(torch.ones(3, 2)).expand(3, 2)).sum()
    optimizer.step(line(torch.ones(3, 2)).sum())
    with pytest.raises(RuntimeError, match="inplace operation"):
        before.backward()
