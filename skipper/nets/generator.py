"""The checkpoint generator: a conditional autoencoder that splits states into context and partial description.

A state is its episode's context (the map) and a partial description (the agent's position), a few bits that are
compared exactly. Other bits fused with the same context give other states of the episode (Sec. 3.4, App. "Checkpoint
Generator"). The decoder reconstructs the agent's cell: one logit per cell.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from skipper.config import GeneratorConfig
from skipper.nets.compiled.exact_types import RESIDUAL_BLOCK, has_exact_types
from skipper.nets.layers import BagOfWords, ResidualBlock
from skipper.runtime import mixed_radix
from skipper.types import EnvironmentSpec, parts_of


class PartialDescription(nn.Module):
    """Observation to logits (B, bits, 2); a bit is the index of the larger of its two."""

    def __init__(self, config: GeneratorConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        width, height, _ = spec.shape
        base = config.generator_width
        layers: list[nn.Module] = [BagOfWords(spec.vocabulary, base), ResidualBlock(base)]
        for channels in (base, 2 * base):
            kernel = min(3, width), min(3, height)  # smaller on tiny grids
            width, height = width - kernel[0] + 1, height - kernel[1] + 1
            layers += [nn.Conv2d(channels, 2 * channels, kernel), ResidualBlock(2 * channels)]
        self.features = nn.Sequential(*layers)
        self.bits = nn.Linear(4 * base, 2 * config.description_bits)

    def forward(self, observation: Tensor) -> Tensor:
        """(B, W, H, C) integers to logits (B, bits, 2)."""
        return self.bits(self.features(observation).amax((2, 3))).unflatten(-1, (-1, 2))


class FlatDescription(nn.Module):
    """A cheaper description that keeps positions: two linear layers on all cells. Not in the paper.

    Pooling over the grid discards positions, so the paper's network must infer them from the surroundings. This one
    learns several times faster at a fraction of the cost. It is built for one grid size, as the whole agent is.
    """

    def __init__(self, config: GeneratorConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        width, height, _ = spec.shape
        if spec.examples is None:
            raise ValueError("flat_description needs examples of observations, which this environment does not offer")
        self.embed = BagOfWords(spec.vocabulary, config.generator_width, examples=torch.from_numpy(spec.examples))
        self.mix = nn.Linear(config.generator_width * width * height, 128)
        self.bits = nn.Linear(128, 2 * config.description_bits)

    def forward(self, observation: Tensor) -> Tensor:
        """(B, W, H, C) integers to logits (B, bits, 2)."""
        return self.bits(functional.relu(self.mix(self.embed(observation).flatten(1)))).unflatten(-1, (-1, 2))


class Fuser(nn.Module):
    """Context and bits to a logit per cell, for the agent's position.

    Nothing but the logits is needed, so the last 1x1 convolution is folded into the convolution before it, which then
    has one output channel. The function is the same.
    """

    def __init__(self, config: GeneratorConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.width = config.generator_width
        self.spread = nn.Linear(2 * config.description_bits, 4 * config.generator_width)
        self.unfold = nn.ConvTranspose2d(4 * config.generator_width, config.generator_width, spec.shape[:2])
        self.mix = ResidualBlock(2 * config.generator_width)
        self.locate = nn.Conv2d(2 * config.generator_width, 1, 1)

    def describe(self, bits: Tensor) -> Tensor:
        """(B, bits, 2) one-hot to (B, width, W, H)."""
        return self.unfold(functional.relu(self.spread(bits.flatten(1)))[:, :, None, None])

    def forward(self, context: Tensor, bits: Tensor) -> Tensor:
        """(B, width, W, H) contexts and (B, bits, 2) one-hot to logits (B, S)."""
        joint = torch.cat([context, self.describe(bits)], 1)
        if not has_exact_types(self.mix, RESIDUAL_BLOCK):  # a changed block cannot be folded
            located: Tensor = self.locate(self.mix(joint))
            return located.flatten(1)
        folded, bias = self.folded()
        hidden = functional.relu(self.mix.widen(functional.relu(joint)), inplace=True)
        summed = _sum_of_neighbours(by_cell(hidden) @ folded, (hidden.shape[2], hidden.shape[3]))
        return summed + bias + self.locate(joint).flatten(1)

    def folded(self) -> tuple[Tensor, Tensor]:
        """The block's second convolution and the last layer as one: a kernel (C, 9) and a bias."""
        narrow, locate = self.mix.narrow, self.locate.weight[0, :, 0, 0]
        assert narrow.bias is not None
        return torch.einsum("c,cdij->dij", locate, narrow.weight).flip(1, 2).flatten(1), locate @ narrow.bias


def by_cell(features: Tensor) -> Tensor:
    """(B, C, W, H) to (B, S, C)."""
    return features.flatten(2).transpose(1, 2).contiguous()


def _sum_of_neighbours(columns: Tensor, size: tuple[int, int]) -> Tensor:
    """(B, S, 9) contributions of each cell to itself and its neighbours, to their sums (B, S).

    Together with the product before it this is a convolution with one output channel, which PyTorch computes slowly.
    """
    return functional.fold(columns.transpose(1, 2), size, 3, padding=1).flatten(1)


class CheckpointGenerator(nn.Module):
    """Context, partial description, and the fuser that combines them."""

    def __init__(self, config: GeneratorConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.bits, self.parts = config.description_bits, parts_of(spec)
        self.context = BagOfWords(spec.vocabulary, config.generator_width)
        describe = FlatDescription if config.flat_description else PartialDescription
        self.description = describe(config, spec)
        self.fuse = self._fuser(config, spec)

    def _fuser(self, config: GeneratorConfig, spec: EnvironmentSpec) -> nn.Module:
        return Fuser(config, spec)

    @torch.no_grad()
    def codes(self, observation: Tensor) -> Tensor:
        """(B, W, H, C) to partial descriptions (B,), as numbers from 0 to 2 ** bits - 1."""
        return bits_to_codes(self.description(observation).argmax(-1))

    def forward(self, observation: Tensor, codes: Tensor) -> Tensor:
        """(B, N, S) logits of the agent's cell for codes (B, N) in the contexts of observations (B, W, H, C).

        Where placements have several parts, the logits of all of them.
        """
        context = self.context(observation).repeat_interleave(codes.shape[1], dim=0)  # (B * N, width, W, H)
        logits: Tensor = self.fuse(context, codes_to_bits(codes.flatten().to(context.device), self.bits))
        return logits.unflatten(0, (codes.shape[0], codes.shape[1]))

    def losses(self, observation: Tensor, context: Tensor, placement: Tensor) -> dict[str, Tensor]:
        """Per-sample (B,): reconstruction of ``placement`` in another's context, and negative entropy of the bits."""
        logits = self.description(observation)  # (B, bits, 2)
        located = self.fuse(self.context(context), straight_through(logits))
        # Not xlogy: its gradient is NaN where a probability underflows to 0. The offset makes even bits 0.
        negative_entropy = (logits.softmax(-1) * logits.log_softmax(-1) + np.log(2.0) / 2).sum((1, 2))
        return {
            "reconstruction": placement_loss(located, placement, self.parts),
            "entropy": negative_entropy,
        }


class GoalGenerator(nn.Module):
    """The agent's position when it is rewarded: a logit per cell from the context alone.

    The simplest form of what the paper's conclusions suggest for agents that are not given the goal.
    """

    def __init__(self, config: GeneratorConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.locate = nn.Sequential(
            BagOfWords(spec.vocabulary, config.generator_width),
            ResidualBlock(config.generator_width),
            nn.Conv2d(config.generator_width, 1, 1),
        )

    def forward(self, observation: Tensor) -> Tensor:
        """(B, W, H, C) integers to logits (B, S)."""
        return self.locate(observation).flatten(1)

    def loss(self, observation: Tensor, cell: Tensor) -> Tensor:
        """Mean cross-entropy of the cells (B,) in which agents were rewarded."""
        logits = self(observation)
        return functional.cross_entropy(logits, cell.to(logits.device))


def placement_loss(logits: Tensor, placement: Tensor, parts: Sequence[int]) -> Tensor:
    """(B,) cross-entropies of placements (B,), summed over their parts; ``logits`` (B, sum of parts)."""
    placement = placement.to(logits.device)
    if len(parts) == 1:
        return functional.cross_entropy(logits, placement, reduction="none")
    digits = torch.from_numpy(mixed_radix.split(placement.cpu().numpy(), parts)).to(logits.device)  # (B, F)
    losses = (
        functional.cross_entropy(part, digits[:, index], reduction="none")
        for index, part in enumerate(logits.split(list(parts), -1))
    )
    return torch.stack(list(losses)).sum(0)


def straight_through(logits: Tensor) -> Tensor:
    """(..., 2) one-hot of the larger logit, with the gradient of the softmax."""
    soft = logits.softmax(-1)
    hard = functional.one_hot(logits.argmax(-1), 2).to(soft)
    return hard + soft - soft.detach()


def bits_to_codes(bits: Tensor) -> Tensor:
    """(..., bits) zeros and ones to numbers."""
    return (bits << torch.arange(bits.shape[-1], device=bits.device)).sum(-1)


def codes_to_bits(codes: Tensor, bits: int) -> Tensor:
    """(...) numbers to one-hot bits (..., bits, 2)."""
    binary = (codes[..., None] >> torch.arange(bits, device=codes.device)) & 1
    return functional.one_hot(binary, 2).float()


def cyclic_weight(update: int, period: int) -> float:
    """Weight of the entropy: rises over the first half of every period, then stays 1."""
    return min(2.0 * (update % period) / period, 1.0)
