"""Compiled losses of pairs against those of the head's own logits."""

import pytest
import torch

from skipper.losses import histogram_loss, scalar_loss
from skipper.nets.compiled.pair_losses import pair_losses, supports
from skipper.nets.heads import PairwiseHead, distance_support, unit_support
from skipper.nets.layers import seeded_initialisation

STATES, PAIRS = 9, 60


def gradients(losses: torch.Tensor, of: list[torch.Tensor]) -> list[torch.Tensor]:
    """With a weight of its own for every pair."""
    return list(torch.autograd.grad((losses * torch.linspace(-1.0, 2.0, PAIRS)).sum(), of))


def assert_equal(found: torch.Tensor, expected: torch.Tensor, learned: list[torch.Tensor]) -> None:
    """Losses and their gradients with respect to what is ``learned`` are equal, and there are gradients."""
    torch.testing.assert_close(found, expected)
    for mine, theirs in zip(gradients(found, learned), gradients(expected, learned), strict=True):
        assert theirs.abs().max() > 0.1, "nothing is compared"
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("support", [distance_support(16), unit_support(5)])
def test_losses_and_gradients_are_those_of_the_layers(support):
    generator = torch.Generator().manual_seed(0)
    with seeded_initialisation(0):
        head = PairwiseHead(8, hidden=12, actions=4, support=support, favoured=0, scaled=True)
    partial = torch.randn(STATES, 8, generator=generator, requires_grad=True)
    source, target = torch.randint(STATES, (2, PAIRS), generator=generator)
    action = torch.randint(4, (PAIRS,), generator=generator)
    aim = torch.rand(PAIRS, generator=generator) * support[-1]
    aim[:4] = torch.tensor([torch.inf, -torch.inf, support[0], support[-1]])  # beyond the ends, and on them
    aim[4:8] = support[1:5]  # on bins

    expected = scalar_loss(head(partial[source], partial[target])[torch.arange(len(action)), action], aim, support)
    found = pair_losses(head, partial, source, target, action, aim)

    assert_equal(found, expected, [partial, *head.parameters()])


@pytest.mark.parametrize("bins", [16, 5])
def test_losses_and_gradients_against_histograms_are_those_of_the_layers(bins):
    generator = torch.Generator().manual_seed(0)
    with seeded_initialisation(0):
        head = PairwiseHead(8, hidden=12, actions=4, support=distance_support(bins), favoured=0, scaled=True)
    partial = torch.randn(STATES, 8, generator=generator, requires_grad=True)
    source, target = torch.randint(STATES, (2, PAIRS), generator=generator)
    action = torch.randint(4, (PAIRS,), generator=generator)
    aim = (3.0 * torch.randn(PAIRS, bins, generator=generator)).softmax(-1)
    aim[:bins] = torch.eye(bins)  # one bin only
    aim[20:40, : bins // 2] = 0.0
    aim /= aim.sum(-1, keepdim=True)

    expected = histogram_loss(head(partial[source], partial[target])[torch.arange(len(action)), action], aim)
    found = pair_losses(head, partial, source, target, action, aim)

    assert_equal(found, expected, [partial, *head.parameters()])


def test_columns_of_different_lengths_are_refused():
    head = PairwiseHead(2, hidden=3, actions=1, support=unit_support(4))
    pair = torch.zeros(2, dtype=torch.int64)
    with pytest.raises(AssertionError):
        pair_losses(head, torch.ones(1, 2), pair, pair, pair, torch.zeros(1))
    with pytest.raises(AssertionError):
        pair_losses(head, torch.ones(1, 2), pair, pair, pair, torch.zeros(1, 4))


def test_certain_predictions_stay_finite():
    with seeded_initialisation(0):
        head = PairwiseHead(2, hidden=3, actions=1, support=unit_support(4))
    with torch.no_grad():
        head.layers[4].bias[:] = torch.tensor([1e4, 0.0, 0.0, 0.0])
    pair = torch.zeros(2, dtype=torch.int64)
    partial = torch.ones(1, 2, requires_grad=True)
    for aim in (torch.tensor([0.0, 1.0]), torch.eye(4)[[0, 3]]):
        partial.grad = None
        losses = pair_losses(head, partial, pair, pair, pair, aim)
        losses.sum().backward()
        assert losses[0] < 1e-6
        assert 9e3 < losses[1] < 2e4
        assert torch.isfinite(partial.grad).all()


class Clipped(PairwiseHead):
    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return super().forward(source, target).clamp(-0.1, 0.1)


def test_only_heads_of_exactly_this_type_are_supported():
    assert supports(PairwiseHead(2, hidden=3, actions=1, support=unit_support(4)))
    assert not supports(Clipped(2, hidden=3, actions=1, support=unit_support(4)))
