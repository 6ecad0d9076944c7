"""Generators for scenes in which more than the agent's cell changes: its direction, doors, keys, what it carries.

The paper's generator, with one map of logits for each part of a placement that is a place, and categories for the rest.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from skipper.config import GeneratorConfig
from skipper.nets.generator import CheckpointGenerator, GoalGenerator, placement_loss
from skipper.nets.layers import BagOfWords, ResidualBlock
from skipper.types import EnvironmentSpec, parts_of


class PlacementHead(nn.Module):
    """Features of cells, and of the whole, to the logits of all parts of a placement."""

    def __init__(self, width: int, whole: int, spec: EnvironmentSpec) -> None:
        super().__init__()
        self._cells, self._parts = spec.shape[0] * spec.shape[1], parts_of(spec)
        places = sum(part >= self._cells for part in self._parts)
        self.locate = nn.Conv2d(width, places, 1)
        self.choose = nn.Linear(whole + width, sum(self._parts) - places * self._cells)

    def forward(self, cells: Tensor, whole: Tensor) -> Tensor:
        """(B, width, W, H) and (B, whole) to logits (B, sum of parts)."""
        maps = list(self.locate(cells).flatten(2).unbind(1))  # (B, S) each
        values = self.choose(torch.cat([whole, cells.amax((2, 3))], -1))
        logits, used = [], 0
        for part in self._parts:
            others = part - self._cells if part >= self._cells else part
            if part >= self._cells:
                logits.append(maps.pop(0))
            logits.append(values[:, used : used + others])
            used += others
        return torch.cat(logits, -1)


class StateFuser(nn.Module):
    """Context and bits to the logits of all parts of a placement; layers as in ``Fuser``."""

    def __init__(self, config: GeneratorConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        width, hidden = config.generator_width, 4 * config.generator_width
        self.spread = nn.Linear(2 * config.description_bits, hidden)
        self.unfold = nn.ConvTranspose2d(hidden, width, spec.shape[:2])
        self.mix = ResidualBlock(2 * width)
        self.place = PlacementHead(2 * width, hidden, spec)

    def forward(self, context: Tensor, bits: Tensor) -> Tensor:
        """(B, width, W, H) contexts and (B, bits, 2) one-hot to logits (B, sum of parts)."""
        described = functional.relu(self.spread(bits.flatten(1)))
        joint = self.mix(torch.cat([context, self.unfold(described[:, :, None, None])], 1))
        logits: Tensor = self.place(joint, described)
        return logits


class StateGenerator(CheckpointGenerator):
    """The checkpoint generator for placements with several parts."""

    def _fuser(self, config: GeneratorConfig, spec: EnvironmentSpec) -> nn.Module:
        return StateFuser(config, spec)


class StateGoalGenerator(nn.Module):
    """The placement when the agent is rewarded, from the context alone; layers as in ``GoalGenerator``."""

    def __init__(self, config: GeneratorConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self._parts = parts_of(spec)
        self.features = nn.Sequential(
            BagOfWords(spec.vocabulary, config.generator_width), ResidualBlock(config.generator_width)
        )
        self.place = PlacementHead(config.generator_width, 0, spec)

    def forward(self, observation: Tensor) -> Tensor:
        """(B, W, H, C) integers to logits (B, sum of parts)."""
        features = self.features(observation)
        logits: Tensor = self.place(features, features.new_empty(len(features), 0))
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
