"""Compiled and plain heads against single pairs, estimated one after the other."""

import numpy as np
import pytest
import torch

from skipper.nets.compiled.heads import BLOCK, CompiledHeads, supports
from skipper.nets.heads import (
    Heads,
    PairEstimates,
    PairwiseHead,
    PlainHeads,
    discount_support,
    distance_support,
    unit_support,
)
from skipper.nets.layers import mlp, seeded_initialisation

WIDTH, ACTIONS, BINS, DISCOUNT = 12, 3, 8, 0.9
DISCOUNTS = discount_support(BINS, DISCOUNT)


class Twin:
    """The modules on all pairs, with the mean over images by hand."""

    def __init__(self, images: int = 1) -> None:
        with seeded_initialisation(0):
            supports = unit_support(BINS), distance_support(BINS), unit_support(BINS)
            value, distance, reward = (
                PairwiseHead(WIDTH, hidden=20, actions=ACTIONS, support=support, scaled=True) for support in supports
            )
            self.heads = Heads(value, distance, reward, mlp(WIDTH, 20, 2, scaled=True), DISCOUNTS)
        rng = np.random.default_rng(0)
        self.names = np.stack([np.arange(ACTIONS), *(rng.permutation(ACTIONS) for _ in range(images - 1))])
        self.partial = rng.normal(size=(30, images, WIDTH)).astype(np.float32)
        with torch.no_grad():  # some states are terminal and some are not
            logits = self.heads.terminal(torch.from_numpy(self.partial))
            self.heads.terminal[-1].bias[1] -= (logits[..., 1] - logits[..., 0]).median()
        pairs = rng.integers(30, size=(2, BLOCK + 40))  # more than one block
        self.source, self.target = pairs

    def estimates(self, compiled: bool = True, discounts: torch.Tensor = DISCOUNTS) -> PairEstimates:
        heads = self.heads._replace(discounts=discounts)
        return CompiledHeads(heads, self.names) if compiled else PlainHeads(heads, self.names, WIDTH)

    @torch.no_grad()
    def histograms(self, head: int, image: int) -> torch.Tensor:
        """(P, A, K) for the actions of the original."""
        sigma = torch.from_numpy(self.partial[:, image])
        logits = self.heads[head](sigma[self.source], sigma[self.target])
        return logits.softmax(-1)[:, self.names[image]]

    def means(self, head: int, support: torch.Tensor) -> torch.Tensor:
        """(P, A) over all images."""
        images = [self.histograms(head, image) @ support for image in range(len(self.names))]
        return torch.stack(images).mean(0)


@pytest.mark.parametrize("images", [1, 3])
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("never", [True, False])
def test_estimates_are_those_of_single_pairs(images, compiled, never):
    twin, discounts = Twin(images), discount_support(BINS, DISCOUNT, never=never)
    assert supports(twin.heads)
    estimates = twin.estimates(compiled, discounts)
    features, terminal = estimates.project(twin.partial)
    assert features.shape == (30, *estimates.feature_shape)
    pairs = features, twin.source, twin.target
    expected = twin.means(0, twin.heads.value.support)
    np.testing.assert_allclose(estimates.values(*pairs), expected, rtol=1e-5, atol=1e-6)
    action, distance, discount = estimates.annotate(*pairs)
    np.testing.assert_array_equal(action, expected.argmax(-1))
    wanted = {
        "distance": (1, twin.heads.distance.support, distance),
        "discount": (1, discounts, discount),
        "reward": (2, twin.heads.reward.support, estimates.rewards(*pairs, action)),
    }
    for head, support, found in wanted.values():
        chosen = twin.means(head, support)[np.arange(len(action)), action]
        np.testing.assert_allclose(found, chosen, rtol=1e-5, atol=1e-6)
    with torch.no_grad():
        ending = twin.heads.terminal(torch.from_numpy(twin.partial)).softmax(-1)[..., 1].mean(1) > 0.5
    np.testing.assert_array_equal(terminal, ending)
    assert 0 < terminal.sum() < len(terminal)


def test_certain_histograms_stay_finite():
    """Exponentials of very negative numbers vanish instead of becoming slow or infinite."""
    twin = Twin()
    with torch.no_grad():
        for head in twin.heads[:3]:
            head.layers[-1].bias[::BINS] += 500.0  # the first bin of every action
    estimates = twin.estimates()
    features, _ = estimates.project(twin.partial)
    _, distance, discount = estimates.annotate(features, twin.source, twin.target)
    np.testing.assert_allclose(distance, 1.0, rtol=1e-6)
    np.testing.assert_allclose(discount, DISCOUNT, rtol=1e-6)
    np.testing.assert_allclose(estimates.values(features, twin.source, twin.target), 0.0, atol=1e-20)


def test_the_number_of_threads_changes_nothing():
    estimates = Twin().estimates()
    many = np.random.default_rng(1).normal(size=(3 * BLOCK + 7, 1, WIDTH)).astype(np.float32)
    pairs = np.arange(len(many)), np.arange(len(many))[::-1].copy()
    found, before = [], torch.get_num_threads()
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            features, terminal = estimates.project(many)
            edges = estimates.annotate(features, *pairs)
            found.append((features, terminal, *edges, estimates.rewards(features, *pairs, edges[0])))
    finally:
        torch.set_num_threads(before)
    for one, three in zip(*found, strict=True):
        np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("compiled", [True, False])
def test_no_pairs_give_no_estimates(compiled):
    twin, none = Twin(), np.empty(0, np.int64)
    estimates = twin.estimates(compiled)
    features, _ = estimates.project(twin.partial)
    assert estimates.values(features, none, none).shape == (0, ACTIONS)
    assert all(len(column) == 0 for column in estimates.annotate(features, none, none))


class Clipped(PairwiseHead):
    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return super().forward(source, target).clamp(-0.1, 0.1)


def test_changed_heads_are_not_supported_and_estimated_by_their_modules():
    twin = Twin()
    twin.heads.distance.__class__ = Clipped
    assert not supports(twin.heads)
    estimates = twin.estimates(compiled=False)
    features, _ = estimates.project(twin.partial)
    action, distance, _ = estimates.annotate(features, twin.source, twin.target)
    expected = twin.means(1, twin.heads.distance.support)[np.arange(len(action)), action]
    np.testing.assert_allclose(distance, expected, rtol=1e-5, atol=1e-6)

    twin = Twin()
    twin.heads.terminal[1] = torch.nn.Tanh()
    assert not supports(twin.heads)
    with seeded_initialisation(0):
        wider = PairwiseHead(WIDTH, hidden=24, actions=ACTIONS, support=unit_support(BINS))
    assert not supports(Twin().heads._replace(reward=wider))
