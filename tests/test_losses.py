"""Every target and loss on small arrays computed by hand."""

import pytest
import torch

from skipper.losses import (
    distance_target,
    histogram_loss,
    return_target,
    reward_target,
    scalar_loss,
    terminal_loss,
    total_loss,
    two_hot,
    value_target,
    weighted_mean,
)

# Four next states: the target; an ordinary one; terminal elsewhere; the target, which is terminal.
REACHED = torch.tensor([True, False, False, True])
TERMINAL = torch.tensor([False, False, True, True])


def test_two_hot():
    support = torch.tensor([0.0, 0.5, 1.0])
    values = torch.tensor([0.0, 0.25, 0.6, 1.0, 7.0, -3.0])
    expected = [[1, 0, 0], [0.5, 0.5, 0], [0, 0.8, 0.2], [0, 0, 1], [0, 0, 1], [1, 0, 0]]
    torch.testing.assert_close(two_hot(values, support), torch.tensor(expected, dtype=torch.float32))


def test_two_hot_on_uneven_supports_and_infinity():
    support = torch.tensor([1.0, 2.0, 4.0])
    expected = torch.tensor([[[0.0, 0.5, 0.5]], [[0.0, 0.0, 1.0]]])
    torch.testing.assert_close(two_hot(torch.tensor([[3.0], [torch.inf]]), support), expected)


def test_two_hot_keeps_the_mean():
    support = torch.linspace(0, 1, 16)
    values = torch.rand(1000)
    torch.testing.assert_close(two_hot(values, support) @ support, values)


def test_histogram_loss_is_the_divergence_from_target_to_prediction():
    target = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    logits = torch.tensor([[0.25, 0.5, 0.25], [0.5, 0.25, 0.25]]).log()
    expected = torch.tensor([0.5, 1.0]) * torch.tensor(2.0).log()  # 0.5 log(0.5 / 0.25) + 0.5 log 1; log(1 / 0.5)
    torch.testing.assert_close(histogram_loss(logits, target), expected)
    torch.testing.assert_close(histogram_loss(target.clamp(1e-30).log(), target), torch.zeros(2))


def test_scalar_loss_puts_the_scalar_into_the_histogram():
    support = torch.tensor([0.0, 0.5, 1.0])
    logits, value = torch.randn(2, 3), torch.tensor([0.25, 1.0])
    expected = histogram_loss(logits, torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]))
    torch.testing.assert_close(scalar_loss(logits, value, support), expected)


def test_value_targets():
    result = value_target(REACHED, TERMINAL, torch.full((4,), 0.8), 0.5)
    torch.testing.assert_close(result, torch.tensor([1.0, 0.4, 0.0, 1.0]))


def test_reward_targets():
    reward = torch.tensor([0.0, 0.25, 0.0, 1.0])
    result = reward_target(reward, REACHED, TERMINAL, torch.full((4,), 0.8), 0.5)
    torch.testing.assert_close(result, torch.tensor([0.0, 0.65, 0.0, 1.0]))


def test_distance_targets():
    result = distance_target(REACHED, TERMINAL, torch.full((4,), 3.0))
    torch.testing.assert_close(result, torch.tensor([1.0, 4.0, torch.inf, 1.0]))


def test_return_targets():
    reward, terminal = torch.tensor([0.0, 1.0]), torch.tensor([False, True])
    result = return_target(reward, terminal, torch.full((2,), 0.5), 0.9)
    torch.testing.assert_close(result, torch.tensor([0.45, 1.0]))


def test_terminal_loss_is_cross_entropy():
    logits = torch.tensor([[0.75, 0.25], [0.75, 0.25]]).log()
    result = terminal_loss(logits, torch.tensor([False, True]))
    torch.testing.assert_close(result, -torch.tensor([0.75, 0.25]).log())


def test_total_loss_scales_and_adds():
    losses = {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([10.0, 20.0])}
    torch.testing.assert_close(total_loss(losses, {"a": 1.0, "b": 0.5}), torch.tensor([6.0, 12.0]))


def test_weighted_mean():
    assert weighted_mean(torch.tensor([1.0, 3.0]), torch.tensor([1.0, 0.5])) == 1.25


def test_shapes_that_would_silently_broadcast_are_refused():
    with pytest.raises(AssertionError):
        weighted_mean(torch.ones(4), torch.ones(4, 1))
    with pytest.raises(AssertionError):
        weighted_mean(torch.ones(4, 1), torch.ones(4, 1))
    with pytest.raises(AssertionError):
        total_loss({"a": torch.ones(4)}, {"a": 1.0, "b": 1.0})
    with pytest.raises(AssertionError):
        total_loss({"a": torch.ones(4), "b": torch.ones(4, 1)}, {"a": 1.0, "b": 1.0})
    with pytest.raises(AssertionError):
        histogram_loss(torch.ones(4, 3), torch.ones(1, 3))
    with pytest.raises(AssertionError):
        value_target(REACHED, TERMINAL, torch.ones(4, 1), 0.9)
    with pytest.raises(AssertionError):
        reward_target(torch.ones(4, 1), REACHED, TERMINAL, torch.ones(4), 0.9)
    with pytest.raises(AssertionError):
        distance_target(REACHED, TERMINAL, torch.ones(1))
    with pytest.raises(AssertionError):
        scalar_loss(torch.ones(4, 3), torch.ones(4, 1), torch.ones(3))
    with pytest.raises(AssertionError):
        terminal_loss(torch.ones(4, 2), torch.ones(4, 1, dtype=torch.bool))
