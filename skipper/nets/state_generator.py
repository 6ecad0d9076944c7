"""Generators for scenes in which more than the agent's cell changes: its direction, doors, keys, what it carries.

The paper's generator, with one map of logits for each part of a placement that is a place, and categories for the rest.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from skipper.config import GeneratorConfig
from skipper.nets.generator import CheckpointGenerator, GoalGenerator, by_cell, codes_to_bits, placement_loss
from skipper.nets.layers import BagOfWords, ResidualBlock
from skipper.types import EnvironmentSpec, parts_of

PAIRS = 128  # contexts and codes that are joined at a time, so that their features stay in the processor's caches


class PlacementHead(nn.Module):
    """Maps of logits for the parts of a placement that are places, and features of the whole, to all its logits."""

    def __init__(self, whole: int, spec: EnvironmentSpec) -> None:
        super().__init__()
        self._cells, self._parts = spec.shape[0] * spec.shape[1], parts_of(spec)
        self.choose = nn.Linear(whole, sum(self._parts) - places_of(spec) * self._cells)

    def forward(self, places: Tensor, whole: Tensor) -> Tensor:
        """(B, places, S) and (B, whole) to logits (B, sum of parts)."""
        maps, values = list(places.unbind(1)), self.choose(whole)
        logits, used = [], 0
        for part in self._parts:
            others = part - self._cells if part >= self._cells else part
            if part >= self._cells:
                logits.append(maps.pop(0))
            logits.append(values[:, used : used + others])
            used += others
        return torch.cat(logits, -1)


def places_of(spec: EnvironmentSpec) -> int:
    """How many parts of a placement are places."""
    return sum(part >= spec.shape[0] * spec.shape[1] for part in parts_of(spec))


class Half(NamedTuple):
    """What contexts or codes contribute to the fuser's hidden layer, and directly to its maps."""

    hidden: Tensor  # (B, S, hidden)
    maps: Tensor  # (B, S, places)

    def rows(self, index: Tensor) -> "Half":
        """Those of ``index`` (P,)."""
        return Half(self.hidden[index], self.maps[index])


class StateFuser(nn.Module):
    """Context and bits to the logits of all parts of a placement.

    Maps are made as by ``Fuser`` with its last two layers folded into one. The first convolution is a sum over the
    channels of context and code, so that each of them is convolved once, however many pairs are made of them.
    """

    def __init__(self, config: GeneratorConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self._width, self._size, places = config.generator_width, spec.shape[:2], places_of(spec)
        hidden = 4 * self._width
        self.spread = nn.Linear(2 * config.description_bits, hidden)
        self.unfold = nn.ConvTranspose2d(hidden, self._width, self._size)
        self.widen = nn.Conv2d(2 * self._width, hidden, 3, padding=1)
        self.locate = nn.Conv2d(hidden, places, 3, padding=1, bias=False)
        self.skip = nn.Conv2d(2 * self._width, places, 1)
        self.place = PlacementHead(2 * hidden, spec)

    def forward(self, context: Tensor, bits: Tensor) -> Tensor:
        """(B, width, W, H) contexts and (B, bits, 2) one-hot to logits (B, sum of parts)."""
        return self.join(self.of_context(context), *self.of_code(bits))

    def of_context(self, context: Tensor) -> Half:
        """What contexts (B, width, W, H) contribute."""
        return self._half(context, slice(self._width), self.widen.bias, self.skip.bias)

    def of_code(self, bits: Tensor) -> tuple[Half, Tensor]:
        """What codes (B, bits, 2) one-hot contribute, and what they describe, (B, hidden)."""
        described = functional.relu(self.spread(bits.flatten(1)))
        return self._half(self.unfold(described[:, :, None, None]), slice(self._width, None), None, None), described

    def _half(self, features: Tensor, channels: slice, widen_bias: Tensor | None, skip_bias: Tensor | None) -> Half:
        hidden = functional.conv2d(functional.relu(features), self.widen.weight[:, channels], widen_bias, padding=1)
        maps = functional.conv2d(features, self.skip.weight[:, channels], skip_bias)
        return Half(by_cell(hidden), by_cell(maps))

    def join(self, context: Half, code: Half, described: Tensor) -> Tensor:
        """(B, sum of parts) logits from what contexts and codes contribute."""
        hidden = functional.relu(context.hidden + code.hidden)  # (B, S, hidden)
        # The second convolution: contributions of each cell to itself and its neighbours, then their sums.
        kernel = self.locate.weight.flip(2, 3).permute(1, 0, 2, 3).flatten(1)  # (hidden, places * 9)
        near = functional.fold((hidden @ kernel).transpose(1, 2), self._size, 3, padding=1).flatten(2)
        maps = near + (context.maps + code.maps).transpose(1, 2)
        logits: Tensor = self.place(maps, torch.cat([described, hidden.amax(1)], -1))
        return logits


class StateGenerator(CheckpointGenerator):
    """The checkpoint generator for placements with several parts."""

    fuse: StateFuser

    def _fuser(self, config: GeneratorConfig, spec: EnvironmentSpec) -> nn.Module:
        return StateFuser(config, spec)

    def forward(self, observation: Tensor, codes: Tensor) -> Tensor:
        """(B, N, sum of parts) logits for codes (B, N) in the contexts of observations (B, W, H, C)."""
        context = self.fuse.of_context(self.context(observation))
        distinct, code_of = codes.flatten().to(context.hidden.device).unique(return_inverse=True)  # (U,), (B * N,)
        code, described = self.fuse.of_code(codes_to_bits(distinct, self.bits))
        context_of = torch.arange(len(codes), device=code_of.device).repeat_interleave(codes.shape[1])
        logits = [
            self.fuse.join(context.rows(row), code.rows(column), described[column])
            for row, column in zip(context_of.split(PAIRS), code_of.split(PAIRS), strict=True)
        ]
        return torch.cat(logits).unflatten(0, tuple(codes.shape))


class StateGoalGenerator(nn.Module):
    """The placement when the agent is rewarded, from the context alone; layers as in ``GoalGenerator``."""

    def __init__(self, config: GeneratorConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self._parts = parts_of(spec)
        self.features = nn.Sequential(
            BagOfWords(spec.vocabulary, config.generator_width), ResidualBlock(config.generator_width)
        )
        self.locate = nn.Conv2d(config.generator_width, places_of(spec), 1)
        self.place = PlacementHead(config.generator_width, spec)

    def forward(self, observation: Tensor) -> Tensor:
        """(B, W, H, C) integers to logits (B, sum of parts)."""
        features = self.features(observation)
        logits: Tensor = self.place(self.locate(features).flatten(2), features.amax((2, 3)))
        return logits

    def loss(self, observation: Tensor, placement: Tensor) -> Tensor:
        """Mean loss of the placements (B,) in which agents were rewarded."""
        return placement_loss(self(observation), placement, self._parts).mean()


def checkpoint_generator(config: GeneratorConfig, spec: EnvironmentSpec) -> CheckpointGenerator:
    """The paper's generator, or one for placements with several parts."""
    return CheckpointGenerator(config, spec) if len(parts_of(spec)) == 1 else StateGenerator(config, spec)


def goal_generator(config: GeneratorConfig, spec: EnvironmentSpec) -> GoalGenerator | StateGoalGenerator:
    """A generator of rewarding states."""
    return GoalGenerator(config, spec) if len(parts_of(spec)) == 1 else StateGoalGenerator(config, spec)
