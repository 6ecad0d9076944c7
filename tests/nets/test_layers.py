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


def test_centring_takes_the_shared_offset_away():
    with seeded_initialisation(0):
        plain, centred = BagOfWords((11, 6), 8), BagOfWords((11, 6), 8, centred=True)
    for words in centred.words:
        torch.testing.assert_close(words.weight.mean(0), torch.zeros(8), atol=1e-6, rtol=0)
    assert plain.words[0].weight.mean(0).abs().max() > 0.01


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
