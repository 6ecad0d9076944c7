"""The checkpoint generator: a conditional autoencoder that splits states into context and partial description.

A state is its episode's context (the map) and a partial description (where the agent is), six bits that are compared
exactly. Fusing other bits with the same context imagines other states of the episode (Sec. 3.4, App. "Checkpoint
Generator"). What is reconstructed is the agent's cell: one logit per cell.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from skipper.config import GeneratorConfig
from skipper.nets.compiled.fuser import Parts, fuse
from skipper.nets.layers import BagOfWords, ResidualBlock, WeightsWatch
from skipper.types import Array, EnvironmentSpec


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

    def describe(self, bits: Tensor) -> Tensor:
        """(B, bits, 2) one-hot to (B, width, W, H)."""
        return self.unfold(functional.relu(self.spread(bits.flatten(1)))[:, :, None, None])

    def plain(self, context: Tensor, bits: Tensor) -> Tensor:
        """The layers one after the other; what ``forward`` is tested against."""
        return self.locate(self.mix(torch.cat([context, self.describe(bits)], 1))).flatten(1)

    def forward(self, context: Tensor, bits: Tensor) -> Tensor:
        """(B, width, W, H) contexts and (B, bits, 2) one-hot to logits (B, S)."""
        joint = torch.cat([context, self.describe(bits)], 1)
        folded, bias = self._folded()
        hidden = functional.relu(self.mix.widen(functional.relu(joint)), inplace=True)
        found = _sum_of_neighbours(_by_cell(hidden) @ folded, (hidden.shape[2], hidden.shape[3]))
        return found + bias + self.locate(joint).flatten(1)

    @torch.no_grad()
    def parts(self, vectors: Tensor, bits: int) -> Parts:
        """Of words with ``vectors`` (V, width), and of all codes of so many bits."""
        described = self.describe(codes_to_bits(torch.arange(2**bits), bits))
        of_context, of_code = self.mix.widen.weight.split(self.width, 1)
        widened = functional.conv2d(functional.relu(described), of_code, padding=1)
        given = torch.einsum("ocij,vc->vijo", of_context, functional.relu(vectors))
        word_place, code_place = self.locate.weight.split(self.width, 1)
        (folded, bias), located = self._folded(), functional.conv2d(described, code_place, self.locate.bias)
        assert self.mix.widen.bias is not None
        found = (
            given.flatten(1, 2),
            widened.flatten(2),
            self.mix.widen.bias,
            folded.T,
            vectors @ word_place[0, :, 0, 0],
            located.flatten(1) + bias,
        )
        return Parts(*(tensor.contiguous().numpy() for tensor in found))

    def _folded(self) -> tuple[Tensor, Tensor]:
        """The block's second convolution and the last layer in one: a kernel (C, 9) and a bias."""
        narrow, locate = self.mix.narrow, self.locate.weight[0, :, 0, 0]
        assert narrow.bias is not None
        return torch.einsum("c,cdij->dij", locate, narrow.weight).flip(1, 2).flatten(1), locate @ narrow.bias


def _by_cell(features: Tensor) -> Tensor:
    """(B, C, W, H) to (B, S, C)."""
    return features.flatten(2).transpose(1, 2).contiguous()


def _sum_of_neighbours(columns: Tensor, size: tuple[int, int]) -> Tensor:
    """(B, S, 9), what each cell adds to itself and its neighbours, to (B, S).

    With the product before it, this is a convolution to a single channel, which is slow as such.
    """
    return functional.fold(columns.transpose(1, 2), size, 3, padding=1).flatten(1)


class CheckpointGenerator(nn.Module):
    """Splitter and fuser."""

    def __init__(self, config: GeneratorConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.bits = config.description_bits
        self.context = BagOfWords(spec.vocabulary, config.generator_width)
        describe = FlatDescription if config.flat_description else PartialDescription
        self.description = describe(config, spec)
        self.fuse = Fuser(config, spec)
        self._parts: Parts | None = None  # of the weights as they are
        self._watch = WeightsWatch(self)

    @torch.no_grad()
    def codes(self, observation: Tensor) -> Tensor:
        """(B,) the partial descriptions as numbers from 0 to 2 ** bits - 1."""
        return bits_to_codes(self.description(observation).argmax(-1))

    def imagine(self, observation: Tensor, codes: Tensor) -> Tensor:
        """(B, N, S) logits of the agent's cell for codes (B, N) in the contexts of observations (B, W, H, C)."""
        logits, _ = fuse(self.words(observation), codes.numpy(), self.parts(), observation.shape[2])
        return torch.from_numpy(logits)

    def words(self, observation: Tensor) -> Array:
        """(B, W, H, C) to (B, S), what is in every cell, as a number."""
        return self.context.places(observation.numpy())

    def parts(self) -> Parts:
        """Of the weights as they are; the same object as long as they stay the same."""
        if self._parts is None or self._watch.changed():
            self._parts = self.fuse.parts(self.context.table().detach(), self.bits)
            self._watch.note()
        return self._parts

    def losses(self, observation: Tensor, context: Tensor, cell: Tensor) -> dict[str, Tensor]:
        """Per-sample (B,): reconstruction of ``cell`` in another state's context, and the bits' lack of entropy."""
        logits = self.description(observation)  # (B, bits, 2)
        located = self.fuse(self.context(context), straight_through(logits))
        # Not by xlogy, whose gradient is not a number where a share is so small that it becomes 0.
        negative_entropy = (logits.softmax(-1) * logits.log_softmax(-1) + np.log(2.0) / 2).sum((1, 2))  # 0 if even
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
