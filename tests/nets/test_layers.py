import numpy as np
import pytest
import torch
from torch import nn

from skipper.nets.encoder import StateEncoder
from skipper.nets.layers import BagOfWords, ResidualBlock, mlp, seeded_initialisation


def test_a_cell_is_the_sum_of_its_words():
    with seeded_initialisation(0):
        bag = BagOfWords((11, 6, 4), 5)
    observation = torch.stack([torch.randint(count, (2, 3, 4)) for count in (11, 6, 4)], dim=-1)
    out = bag(observation.to(torch.uint8))
    assert out.shape == (2, 5, 3, 4)
    for channel in range(3):
        assert bag.words[channel].weight.grad is None
    expected = sum(bag.words[channel].weight[observation[..., channel]] for channel in range(3))
    torch.testing.assert_close(out, expected.permute(0, 3, 1, 2))
    out.sum().backward()
    assert bag.words[2].weight.grad.sum() == out.numel()


def test_with_examples_rare_words_have_large_vectors_and_the_mean_cell_is_zero():
    examples = torch.ones(5, 6, 6, 2, dtype=torch.uint8)
    examples[:, 2, 3, 0] = 10  # one cell of 36
    with seeded_initialisation(0):
        plain, balanced = BagOfWords((11, 6), 8), BagOfWords((11, 6), 8, examples=examples)
    torch.testing.assert_close(balanced(examples).mean((0, 2, 3)), torch.zeros(8), atol=1e-5, rtol=0)
    differences = [bag(examples).std((0, 2, 3)) for bag in (plain, balanced)]
    assert plain(examples).mean((0, 2, 3)).abs().max() > 0.1
    common, rare = (balanced(examples)[0, :, x, y].norm() for x, y in ((0, 0), (2, 3)))
    assert rare > 20 * common
    assert all(difference.min() > 0 for difference in differences)


def test_scaled_layers_keep_differences_between_inputs():
    with seeded_initialisation(0):
        plain, scaled = mlp(64, 256, 8), mlp(64, 256, 8, scaled=True)
    x = torch.randn(100, 64)
    before_last = [layers[:-1](x).std(0).mean() for layers in (plain, scaled)]
    assert before_last[1] > 2 * before_last[0]


def test_a_residual_block_adds_to_its_input():
    block = ResidualBlock(3)
    x = torch.randn(2, 3, 4, 5)
    nn.init.zeros_(block.narrow.weight)
    nn.init.zeros_(block.narrow.bias)
    assert (block(x) == x).all()
    assert block.widen.out_channels == 6


def test_a_residual_block_computed_by_hand():
    block = ResidualBlock(1)
    for parameter in block.parameters():
        nn.init.constant_(parameter, 0.0)
    block.widen.weight.data[0, :, 1, 1] = 2.0  # one inner channel sees twice the cell itself,
    block.widen.weight.data[1, :, 1, 1] = -5.0  # the other its opposite
    block.narrow.weight.data[:, :, 1, 1] = 1.0
    x = torch.tensor([[[[3.0, -1.0]]]])
    assert block(x).tolist() == [[[[3.0 + 6.0, -1.0]]]]  # ReLU comes before both convolutions


def test_the_encoder_keeps_the_grid():
    assert StateEncoder((11, 6), 16)(torch.ones(2, 12, 7, 2, dtype=torch.uint8)).shape == (2, 16, 12, 7)


@pytest.mark.parametrize("words", [3, 12])
def test_the_encoder_folds_words_into_its_first_convolution(words):
    """Few words are folded and many are not; numbers and gradients are those of the layers one after the other."""
    with seeded_initialisation(0):
        encoder = StateEncoder((5, 3), 6)
    every = torch.tensor([(one, two) for one in range(5) for two in range(3)], dtype=torch.uint8)
    drawn = torch.from_numpy(np.random.default_rng(0).integers(words, size=(4, 5, 7)))
    state = every[-words:][drawn]
    found, wanted = encoder(state), encoder.mix(encoder.embed(state))
    torch.testing.assert_close(found, wanted)
    slope = torch.linspace(-1, 1, found.numel()).reshape(found.shape)
    for one, two in zip(
        torch.autograd.grad(found, list(encoder.parameters()), slope),
        torch.autograd.grad(wanted, list(encoder.parameters()), slope),
        strict=True,
    ):
        torch.testing.assert_close(one, two, atol=1e-4, rtol=1e-4)


def test_initialisation_is_decided_by_its_seed_and_leaves_the_global_stream_alone():
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    with seeded_initialisation(1):
        one = mlp(4, 5, 6)
    with seeded_initialisation(1):
        two = mlp(4, 5, 6)
    assert (torch.random.get_rng_state() == before).all()
    assert all((a == b).all() for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert [type(layer).__name__ for layer in one] == ["Linear", "ReLU", "Linear", "ReLU", "Linear"]
