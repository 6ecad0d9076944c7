"""Every target and loss on small arrays computed by hand."""

import pytest
import torch

from skipper.losses import (
    distance_histogram_target,
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
ONE_STEP, THREE_STEPS = torch.ones(4), torch.full((4,), 3.0)


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
    value = torch.full((4,), 0.8)
    result = value_target(REACHED, TERMINAL, value, 0.5, ONE_STEP)
    torch.testing.assert_close(result, torch.tensor([1.0, 0.4, 0.0, 1.0]))
    result = value_target(REACHED, TERMINAL, value, 0.5, THREE_STEPS)
    torch.testing.assert_close(result, torch.tensor([0.25, 0.1, 0.0, 0.25]))


def test_reward_targets():
    reward = torch.tensor([0.0, 0.25, 0.0, 1.0])
    later = torch.full((4,), 0.8)
    result = reward_target(reward, REACHED, TERMINAL, later, 0.5, ONE_STEP)
    torch.testing.assert_close(result, torch.tensor([0.0, 0.65, 0.0, 1.0]))
    # What was collected is discounted already.
    result = reward_target(reward, REACHED, TERMINAL, later, 0.5, THREE_STEPS)
    torch.testing.assert_close(result, torch.tensor([0.0, 0.35, 0.0, 1.0]))


def test_distance_targets():
    later = torch.full((4,), 5.0)
    result = distance_target(REACHED, TERMINAL, later, ONE_STEP)
    torch.testing.assert_close(result, torch.tensor([1.0, 6.0, torch.inf, 1.0]))
    result = distance_target(REACHED, TERMINAL, later, THREE_STEPS)
    torch.testing.assert_close(result, torch.tensor([3.0, 8.0, torch.inf, 3.0]))


def test_every_transition_has_steps_of_its_own():
    none, steps = torch.zeros(3, dtype=torch.bool), torch.tensor([1.0, 2.0, 3.0])
    ones = torch.ones(3)
    torch.testing.assert_close(value_target(none, none, ones, 0.5, steps), torch.tensor([0.5, 0.25, 0.125]))
    torch.testing.assert_close(reward_target(ones, none, none, ones, 0.5, steps), torch.tensor([1.5, 1.25, 1.125]))
    torch.testing.assert_close(distance_target(none, none, ones, steps), torch.tensor([2.0, 3.0, 4.0]))
    found = distance_histogram_target(none, none, torch.eye(4)[:3], steps)
    torch.testing.assert_close(found, torch.eye(4)[[1, 3, 3]])


def test_distance_histogram_targets():
    """The last of four bins takes what is longer, and never."""
    histogram = torch.tensor([[0.1, 0.2, 0.3, 0.4]]).expand(4, 4)
    expected = [[1, 0, 0, 0], [0, 0.1, 0.2, 0.7], [0, 0, 0, 1], [1, 0, 0, 0]]
    result = distance_histogram_target(REACHED, TERMINAL, histogram, ONE_STEP)
    torch.testing.assert_close(result, torch.tensor(expected, dtype=torch.float32))
    expected = [[0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 1, 0]]
    result = distance_histogram_target(REACHED, TERMINAL, histogram, THREE_STEPS)
    torch.testing.assert_close(result, torch.tensor(expected, dtype=torch.float32))
    # More steps than there are bins: reached, but later than the histogram tells.
    result = distance_histogram_target(REACHED, TERMINAL, histogram, torch.full((4,), 9.0))
    torch.testing.assert_close(result, torch.eye(4)[[3, 3, 3, 3]])


def test_distance_histogram_targets_are_distributions_whose_means_are_distance_targets():
    generator = torch.Generator().manual_seed(0)
    histogram = torch.rand(200, 16, generator=generator).softmax(-1)
    histogram[:, 8:] = 0.0  # so that nothing overflows
    histogram /= histogram.sum(-1, keepdim=True)
    reached, terminal = torch.rand(2, 200, generator=generator) < 0.3
    steps, support = torch.randint(1, 8, (200,), generator=generator).float(), torch.arange(1.0, 17.0)
    found = distance_histogram_target(reached, terminal, histogram, steps)
    assert (found >= 0).all()
    torch.testing.assert_close(found.sum(-1), torch.ones(200))
    expected = distance_target(reached, terminal, histogram @ support, steps).clamp(max=16.0)
    torch.testing.assert_close(found @ support, expected)


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
        value_target(REACHED, TERMINAL, torch.ones(4, 1), 0.9, ONE_STEP)
    with pytest.raises(AssertionError):
        reward_target(torch.ones(4, 1), REACHED, TERMINAL, torch.ones(4), 0.9, ONE_STEP)
    with pytest.raises(AssertionError):
        distance_target(REACHED, TERMINAL, torch.ones(1), ONE_STEP)
    with pytest.raises(AssertionError):
        distance_target(REACHED, TERMINAL, torch.ones(4), torch.ones(4, 1))
    with pytest.raises(AssertionError):
        distance_histogram_target(REACHED, TERMINAL, torch.ones(1, 4), ONE_STEP)
    with pytest.raises(AssertionError):
        scalar_loss(torch.ones(4, 3), torch.ones(4, 1), torch.ones(3))
    with pytest.raises(AssertionError):
        terminal_loss(torch.ones(4, 2), torch.ones(4, 1, dtype=torch.bool))
