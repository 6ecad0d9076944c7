"""The checkpoint generator: a conditional autoencoder that splits states into context and partial description.

A state is its episode's context (the map) and a partial description (where the agent is), six bits that are compared
exactly. Fusing other bits with the same context imagines other states of the episode (Sec. 3.4, App. "Checkpoint
Generator"). What is reconstructed is the agent's cell: one logit per cell.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from skipper.config import GeneratorConfig
from skipper.nets.layers import BagOfWords, ResidualBlock
from skipper.types import Array, EnvironmentSpec

CHUNK = 32  # states that are imagined together: more would not stay in the processor's cache


class PartialDescription(nn.Module):
    """Observation to logits (B, bits, 2); the larger of each two is the bit."""

    def __init__(self, config: GeneratorConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        width, height, _ = spec.shape
        base = config.generator_width
        layers: list[nn.Module] = [BagOfWords(spec.vocabulary, base), ResidualBlock(base)]
        for channels in (base, 2 * base):
            kernel = min(3, width), min(3, height)  # on tiny grids there is no room for more
            width, height = width - kernel[0] + 1, height - kernel[1] + 1
            layers += [nn.Conv2d(channels, 2 * channels, kernel), ResidualBlock(2 * channels)]
        self.features = nn.Sequential(*layers)
        self.bits = nn.Linear(4 * base, 2 * config.description_bits)

    def forward(self, observation: Tensor) -> Tensor:
        """(B, W, H, C) integers to logits (B, bits, 2)."""
        return self.bits(self.features(observation).amax((2, 3))).unflatten(-1, (-1, 2))


class FlatDescription(nn.Module):
    """A cheaper way from observation to bits that sees where things are: two linear layers on all cells.

    Pooling over the grid forgets places, so the paper's network has to tell them by what surrounds them. This one
    learns several times faster and costs a fraction; it is made for one size of grid, as the whole agent is.
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
    """Context and bits to a logit per cell: where the agent is.

    Only the logits are wanted, so the last 1x1 convolution is folded into the convolution before it: the function is
    the same and the largest layer nearly vanishes. And since convolutions are linear, the first one splits into a part
    of the context and a part of the bits, so imagining many states of one context computes neither part more often
    than needed.
    """

    def __init__(self, config: GeneratorConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.width = config.generator_width
        self.spread = nn.Linear(2 * config.description_bits, 4 * config.generator_width)
        self.unfold = nn.ConvTranspose2d(4 * config.generator_width, config.generator_width, spec.shape[:2])
        self.mix = ResidualBlock(2 * config.generator_width)
        self.locate = nn.Conv2d(2 * config.generator_width, 1, 1)
        self._remembered: tuple[Any, tuple[Tensor, Tensor]] | None = None

    def describe(self, bits: Tensor) -> Tensor:
        """(B, bits, 2) one-hot to (B, width, W, H)."""
        return self.unfold(functional.relu(self.spread(bits.flatten(1)))[:, :, None, None])

    def plain(self, context: Tensor, bits: Tensor) -> Tensor:
        """The layers one after the other; what ``forward`` is tested against."""
        return self.locate(self.mix(torch.cat([context, self.describe(bits)], 1))).flatten(1)

    def forward(self, context: Tensor, bits: Tensor) -> Tensor:
        """(B, width, W, H) contexts and (B, bits, 2) one-hot to logits (B, S)."""
        joint = torch.cat([context, self.describe(bits)], 1)
        return self._locate(self.mix.widen(functional.relu(joint)), self.locate(joint))

    def context_part(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """(B, width, W, H) to what contexts add to the hidden layer, bias included, and to the logits."""
        widened = functional.conv2d(
            functional.relu(context), self.mix.widen.weight[:, : self.width], self.mix.widen.bias, padding=1
        )
        return widened, functional.conv2d(context, self.locate.weight[:, : self.width], self.locate.bias)

    def bits_part(self, bits: Tensor) -> tuple[Tensor, Tensor]:
        """(N, bits, 2) one-hot to what descriptions add to the hidden layer and to the logits."""
        described = self.describe(bits)
        widened = functional.conv2d(functional.relu(described), self.mix.widen.weight[:, self.width :], padding=1)
        return widened, functional.conv2d(described, self.locate.weight[:, self.width :])

    def join(self, context: tuple[Tensor, Tensor], bits: tuple[Tensor, Tensor]) -> Tensor:
        """Parts (b, 1, C, W, H) and (b, N, C, W, H), or others that broadcast, to logits (b, N, S)."""
        hidden, skipped = context[0] + bits[0], context[1] + bits[1]
        return self._locate(hidden.flatten(0, 1), skipped.flatten(0, 1)).unflatten(0, hidden.shape[:2])

    def all_bits_part(self, bits: int) -> tuple[Tensor, Tensor]:
        """``bits_part`` of all codes in turn, computed once for the weights as they are; without gradients."""
        weights = (*self.spread.parameters(), *self.unfold.parameters(), self.mix.widen.weight, self.locate.weight)
        state = tuple((weight.data_ptr(), weight._version) for weight in weights)
        if self._remembered is None or self._remembered[0] != state:
            with torch.no_grad():
                hidden, skipped = self.bits_part(codes_to_bits(torch.arange(2**bits), bits))
                self._remembered = state, (hidden.to(memory_format=torch.channels_last), skipped)
        return self._remembered[1]

    def _locate(self, hidden: Tensor, skipped: Tensor) -> Tensor:
        """What the residual block and the last layer make of the hidden layer (B, C, W, H), and of what skipped it."""
        narrow, locate = self.mix.narrow, self.locate.weight[0, :, 0, 0]
        assert narrow.bias is not None
        B, _, W, H = hidden.shape  # noqa: N806
        # A convolution to one channel is slow as such. It is a product with nine columns, shifted and summed.
        kernel = torch.einsum("c,cdij->dij", locate, narrow.weight).flip(1, 2).flatten(1)  # (C, 9)
        columns = functional.relu(hidden, inplace=True).permute(0, 2, 3, 1).flatten(0, 2) @ kernel  # (B * W * H, 9)
        found = functional.fold(columns.view(B, W * H, 9).transpose(1, 2), (W, H), 3, padding=1)
        return (found + locate @ narrow.bias + skipped).flatten(1)


class CheckpointGenerator(nn.Module):
    """Splitter and fuser."""

    def __init__(self, config: GeneratorConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.bits = config.description_bits
        self.context = BagOfWords(spec.vocabulary, config.generator_width)
        describe = FlatDescription if config.flat_description else PartialDescription
        self.description = describe(config, spec)
        self.fuse = Fuser(config, spec)

    @torch.no_grad()
    def codes(self, observation: Tensor) -> Tensor:
        """(B,) the partial descriptions as numbers from 0 to 2 ** bits - 1."""
        return bits_to_codes(self.description(observation).argmax(-1))

    @torch.no_grad()
    def imagine(self, observation: Tensor, codes: Tensor) -> Tensor:
        """(B, N, S) logits of the agent's cell for codes (B, N) in the contexts of observations (B, W, H, C)."""
        hidden, skipped = self.fuse.context_part(self.context(observation))  # (B, ...)
        all_hidden, all_skipped = self.fuse.all_bits_part(self.bits)  # (codes, ...)
        step = max(CHUNK // codes.shape[1], 1) if codes.shape[1] else len(codes)
        logits = [
            self.fuse.join((hidden[rows, None], skipped[rows, None]), (all_hidden[chosen], all_skipped[chosen]))
            for rows, chosen in (
                (slice(row, row + step), codes[row : row + step]) for row in range(0, len(codes), step)
            )
        ]
        return torch.cat(logits)

    def losses(self, observation: Tensor, context: Tensor, cell: Tensor) -> dict[str, Tensor]:
        """Per-sample (B,): reconstruction of ``cell`` in another state's context, and the bits' lack of entropy."""
        logits = self.description(observation)  # (B, bits, 2)
        located = self.fuse(self.context(context), straight_through(logits))
        share = logits.softmax(-1)
        negative_entropy = (torch.xlogy(share, share) + np.log(2.0) / 2).sum((1, 2))  # 0 where bits are even
        return {
            "reconstruction": functional.cross_entropy(located, cell, reduction="none"),
            "entropy": negative_entropy,
        }


class GoalGenerator(nn.Module):
    """Where the agent is when it is rewarded: a logit per cell from the context alone.

    The paper leaves a generator of rewarding states to those whom nobody tells the goal; this is the simplest one.
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
        """Mean cross-entropy of the rewarded ``cell`` (B,)."""
        return functional.cross_entropy(self(observation), cell)


def straight_through(logits: Tensor) -> Tensor:
    """(..., 2) one-hot of the larger logit, with the gradient of the softmax."""
    share = logits.softmax(-1)
    hard = functional.one_hot(logits.argmax(-1), 2).to(share)
    return hard + share - share.detach()


def bits_to_codes(bits: Tensor) -> Tensor:
    """(..., bits) zeros and ones to numbers."""
    return (bits << torch.arange(bits.shape[-1])).sum(-1)


def codes_to_bits(codes: Tensor, bits: int) -> Tensor:
    """(...) numbers to one-hot bits (..., bits, 2)."""
    binary = (codes[..., None] >> torch.arange(bits)) & 1
    return functional.one_hot(binary, 2).float()


def distinct_codes(problems: int, count: int, bits: int, rng: np.random.Generator) -> Array:
    """(problems, count) codes, all different within a problem, each set equally likely."""
    total = 2**bits
    if count > total:
        raise ValueError(f"{bits} bits give only {total} codes, but {count} different ones were asked for")
    return rng.permuted(np.tile(np.arange(total), (problems, 1)), axis=1)[:, :count]


def cyclic_weight(update: int, period: int) -> float:
    """The weight of the entropy: rising over the first half of every period, then 1."""
    return min(2.0 * (update % period) / period, 1.0)
