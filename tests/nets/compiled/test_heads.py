"""Compiled heads against the layers that they stand for."""

import numpy as np
import pytest
import torch

from skipper.nets.compiled.heads import CHUNK, StillHeads
from skipper.nets.heads import PairwiseHead, discount_support, distance_support, unit_support
from skipper.nets.layers import mlp, seeded_initialisation

WIDTH, ACTIONS, BINS, DISCOUNT = 12, 3, 8, 0.9


class Twin:
    """The layers, asked about all pairs one after the other, and the mean over images by hand."""

    def __init__(self, images: int = 1) -> None:
        with seeded_initialisation(0):
            supports = unit_support(BINS), distance_support(BINS), unit_support(BINS)
            value, distance, reward = (
                PairwiseHead(WIDTH, hidden=20, actions=ACTIONS, support=support, scaled=True) for support in supports
            )
            self.pairwise, self.terminal = (value, distance, reward), mlp(WIDTH, 20, 2, scaled=True)
        rng = np.random.default_rng(0)
        self.names = np.stack([np.arange(ACTIONS), *(rng.permutation(ACTIONS) for _ in range(images - 1))])
        self.partial = rng.normal(size=(30, images, WIDTH)).astype(np.float32)
        with torch.no_grad():  # some states are the end and some are not
            logits = self.terminal(torch.from_numpy(self.partial))
            self.terminal[-1].bias[1] -= (logits[..., 1] - logits[..., 0]).median()
        pairs = rng.integers(30, size=(2, CHUNK + 40))  # more than are asked at a time
        self.source, self.target = pairs
        self.still = StillHeads(self.pairwise, self.terminal, DISCOUNT, self.names)

    @torch.no_grad()
    def histograms(self, head: int, image: int) -> torch.Tensor:
        """(P, A, K) by the names that actions have in the original."""
        sigma = torch.from_numpy(self.partial[:, image])
        logits = self.pairwise[head](sigma[self.source], sigma[self.target])
        return logits.softmax(-1)[:, self.names[image]]

    def means(self, head: int, support: torch.Tensor) -> torch.Tensor:
        """(P, A) over all images."""
        images = [self.histograms(head, image) @ support for image in range(len(self.names))]
        return torch.stack(images).mean(0)


@pytest.mark.parametrize("images", [1, 3])
def test_heads_say_what_their_layers_say(images):
    twin = Twin(images)
    ends, terminal = twin.still.meet(twin.partial)
    asked = ends, twin.source, twin.target
    value, distance, reward = (head.support for head in twin.pairwise)
    expected = twin.means(0, value)
    np.testing.assert_allclose(twin.still.values(*asked), expected, rtol=1e-5, atol=1e-6)
    action, steps, discount = twin.still.ways(*asked)
    np.testing.assert_array_equal(action, expected.argmax(-1))
    wanted = {"steps": (1, distance, steps), "discount": (1, discount_support(BINS, DISCOUNT), discount)}
    wanted["reward"] = 2, reward, twin.still.rewards(*asked, action)
    for head, support, found in wanted.values():
        chosen = twin.means(head, support)[np.arange(len(action)), action]
        np.testing.assert_allclose(found, chosen, rtol=1e-5, atol=1e-6)
    with torch.no_grad():
        ending = twin.terminal(torch.from_numpy(twin.partial)).softmax(-1)[..., 1].mean(1) > 0.5
    np.testing.assert_array_equal(terminal, ending)
    assert 0 < terminal.sum() < len(terminal)


def test_certain_histograms_are_no_trouble():
    """Exponentials of very negative numbers vanish instead of becoming slow or infinite."""
    twin = Twin()
    with torch.no_grad():
        for head in twin.pairwise:
            head.layers[-1].bias[::BINS] += 500.0  # the first bin of every action
    ends, _ = twin.still.meet(twin.partial)
    _, steps, discount = twin.still.ways(ends, twin.source, twin.target)
    np.testing.assert_allclose(steps, 1.0, rtol=1e-6)
    np.testing.assert_allclose(discount, DISCOUNT, rtol=1e-6)
    np.testing.assert_allclose(twin.still.values(ends, twin.source, twin.target), 0.0, atol=1e-20)


def test_the_number_of_threads_changes_nothing():
    twin = Twin()
    many = np.random.default_rng(1).normal(size=(3 * CHUNK + 7, 1, WIDTH)).astype(np.float32)
    pairs = np.arange(len(many)), np.arange(len(many))[::-1].copy()
    found, before = [], torch.get_num_threads()
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            ends, terminal = twin.still.meet(many)
            ways = twin.still.ways(ends, *pairs)
            found.append((ends, terminal, *ways, twin.still.rewards(ends, *pairs, ways[0])))
    finally:
        torch.set_num_threads(before)
    for one, three in zip(*found, strict=True):
        np.testing.assert_array_equal(one, three)


def test_new_weights_are_noticed_and_no_pairs_are_no_trouble():
    twin = Twin()
    before, _ = twin.still.meet(twin.partial)
    with torch.no_grad():
        twin.pairwise[0].layers[0].weight.mul_(2.0)
        twin.pairwise[0].layers[4].weight.mul_(2.0)
    ends, _ = twin.still.meet(twin.partial)
    assert abs(ends - before).max() > 1e-2
    found = twin.still.values(ends, twin.source, twin.target)
    np.testing.assert_allclose(found, twin.means(0, twin.pairwise[0].support), rtol=1e-5, atol=1e-6)
    none = np.empty(0, np.int64)
    assert twin.still.values(ends, none, none).shape == (0, ACTIONS)
    assert all(len(column) == 0 for column in twin.still.ways(ends, none, none))
