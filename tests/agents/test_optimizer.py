import numpy as np
import pytest
import torch
from torch import nn

from skipper.agents.optimizer import NotFiniteError, Optimizer, _surprise
from skipper.config import LearningConfig
from skipper.nets.layers import seeded_initialisation


def test_the_optimizer_clips_gradients_by_value_and_refuses_what_is_not_finite():
    network = torch.nn.Linear(1, 1, bias=False)
    network.weight.data.fill_(1.0)
    optimizer = Optimizer(network, LearningConfig(learning_rate=0.1, gradient_clip=0.5))
    optimizer.step((network.weight * 100.0).sum())
    (state,) = optimizer.state_dict().values()
    assert state["mean"].item() == pytest.approx(0.1 * 0.5)  # a tenth of the clipped gradient
    with pytest.raises(NotFiniteError, match="became nan"):
        optimizer.step(network.weight.sum() * float("nan"))


def test_gradients_that_are_not_finite_change_nothing():
    network = torch.nn.Linear(1, 1, bias=False)
    optimizer = Optimizer(network, LearningConfig())
    before = network.weight.item()
    with pytest.raises(NotFiniteError, match="gradient"):
        optimizer.step((network.weight - network.weight.detach()).abs().sqrt().sum())  # finite, with an infinite slope
    assert network.weight.item() == before


def test_adam_is_the_configured_one():
    network = torch.nn.Linear(2, 1, bias=False)
    network.weight.data.zero_()
    optimizer = Optimizer(network, LearningConfig(learning_rate=0.1, adam_epsilon=0.5, gradient_clip=0.3))
    optimizer.step((network.weight * torch.tensor([[0.2, 50.0]])).sum())
    # The first step of Adam is lr * g / (|g| + eps), each entry clipped on its own.
    expected = torch.tensor([[-0.1 * 0.2 / 0.7, -0.1 * 0.3 / 0.8]])
    torch.testing.assert_close(network.weight.detach(), expected)


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


def test_surprising_gradients_move_a_parameter_less():
    def moved(limit: float, slopes: list[float]) -> list[float]:
        network = torch.nn.Linear(2, 1, bias=False)
        network.weight.data.zero_()
        config = LearningConfig(learning_rate=0.1, adam_epsilon=1e-9, gradient_clip=100.0, update_clip=limit)
        optimizer, found = Optimizer(network, config), []
        for slope in slopes:
            before = network.weight.detach().clone()
            optimizer.step((network.weight * slope).sum())
            found.append((network.weight.detach() - before)[0, 0].item())
        return found

    even = [1.0] * 20
    assert moved(1.0, even) == pytest.approx(moved(0.0, even), rel=1e-4)  # as large as expected
    sudden = [*even, 50.0]
    free, limited = moved(0.0, sudden)[-1], moved(1.0, sudden)[-1]
    square = (1 - 0.999**20 + 0) * 0.999 + 0.001 * 2500.0  # of a gradient of 1, twenty times, and then of 50
    surprise = 50.0 / np.sqrt(square / (1 - 0.999**21))
    assert surprise > 3.0
    assert limited == pytest.approx(free / surprise, rel=1e-3)
    assert moved(2.0, sudden)[-1] == pytest.approx(2.0 * free / surprise, rel=1e-3)


@pytest.mark.parametrize("count", [1, 16, 37])
def test_surprise_is_that_of_a_plain_sum(count):
    rng = np.random.default_rng(count)
    gradient, square = rng.normal(size=count).astype(np.float32), rng.random(count).astype(np.float32)
    correction, epsilon, clip = 0.5, 1e-7, 1.5
    slope = gradient.clip(-clip, clip)
    expected = (0.999 * square + 0.001 * slope**2) / correction
    settings = tuple(map(np.float32, (1e-3, correction, epsilon, clip)))
    found = _surprise(gradient, square, settings)
    assert found == pytest.approx(np.sqrt((slope**2 / expected).mean()), rel=1e-5)
