"""Adam, on parameters that lie side by side in memory, in one pass over them.

The network library has one too, but constructing it imports a compiler, which takes two seconds.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from skipper.config import LearningConfig
from skipper.runtime.jit import kernel
from skipper.types import Array

MEAN_DECAY, SQUARE_DECAY = 0.9, 0.999  # Adam's betas


class NotFiniteError(RuntimeError):
    """A loss became infinite or not a number."""


class Block(NamedTuple):
    """Parameters that lie side by side in one vector, so that one operation changes them all."""

    vector: Tensor
    parameters: dict[str, nn.Parameter]

    def split(self, vector: Array) -> dict[str, Array]:
        """The pieces of a vector of this size that belong to the parameters, in their shapes."""
        ends = np.cumsum([parameter.numel() for parameter in self.parameters.values()])
        named = zip(self.parameters.items(), np.split(vector, ends[:-1]), strict=True)
        return {name: piece.reshape(parameter.shape) for (name, parameter), piece in named}

    def gradient(self) -> Tensor | None:
        """That of the whole vector; None where no parameter has one."""
        gradients = [parameter.grad for parameter in self.parameters.values()]
        if all(gradient is None for gradient in gradients):
            return None
        pairs = zip(self.parameters.values(), gradients, strict=True)
        return torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for p, g in pairs])


@torch.no_grad()
def side_by_side(network: nn.Module) -> list[Block]:
    """Lay the parameters of each part of a network side by side in memory."""
    parts: dict[str, dict[str, nn.Parameter]] = {}
    for name, parameter in network.named_parameters():
        parts.setdefault(name.partition(".")[0], {})[name] = parameter
    blocks = []
    for parameters in parts.values():
        block = Block(torch.cat([parameter.detach().flatten() for parameter in parameters.values()]), parameters)
        for parameter, piece in zip(parameters.values(), block.split(block.vector.numpy()).values(), strict=True):
            parameter.data = torch.from_numpy(piece)
        blocks.append(block)
    return blocks


@dataclass
class Moments:
    """What Adam remembers of the gradients of a block."""

    mean: Array
    square: Array
    steps: int = 0


@kernel
def _descend(weights, gradient, mean, square, settings):
    """One step of Adam; ``settings`` are the step's length, what to divide squares by, epsilon, and the clip."""
    length, scale, epsilon, clip = settings
    keep_mean, keep_square, one = np.float32(MEAN_DECAY), np.float32(SQUARE_DECAY), np.float32(1.0)
    for place in range(len(weights)):
        slope = min(max(gradient[place], -clip), clip)
        mean[place] = keep_mean * mean[place] + (one - keep_mean) * slope
        square[place] = keep_square * square[place] + (one - keep_square) * slope * slope
        weights[place] -= length * mean[place] / (np.sqrt(square[place] / scale) + epsilon)


class Optimizer:
    """Adam with the gradients clipped by value; one for all parameters of an agent."""

    def __init__(self, network: nn.Module, config: LearningConfig) -> None:
        self.blocks = side_by_side(network)
        self._parameters = list(network.parameters())
        self._config = config
        self._moments: dict[int, Moments] = {}  # by the block's number; one without gradients has none

    def step(self, loss: Tensor, share: float = 1.0) -> float:
        """One update at ``share`` of the learning rate; returns the loss as a number, which must be finite."""
        value = float(loss.detach())
        if not np.isfinite(value):
            raise NotFiniteError(f"the loss became {value}")
        for parameter in self._parameters:
            parameter.grad = None
        loss.backward()
        gradients = {number: block.gradient() for number, block in enumerate(self.blocks)}
        found = {number: gradient for number, gradient in gradients.items() if gradient is not None}
        if not all(torch.isfinite(gradient.sum()) for gradient in found.values()):
            raise NotFiniteError("a gradient became infinite or not a number")
        for number, gradient in found.items():
            self._descend(number, gradient, share)
        # Nothing says that the weights have changed, and what is remembered of them must know.
        torch.autograd.graph.increment_version(self._parameters)
        return value

    def _descend(self, number: int, gradient: Tensor, share: float) -> None:
        weights, config = self.blocks[number].vector.numpy(), self._config
        if number not in self._moments:
            self._moments[number] = Moments(np.zeros_like(weights), np.zeros_like(weights))
        moments = self._moments[number]
        moments.steps += 1
        settings = (
            share * config.learning_rate / (1.0 - MEAN_DECAY**moments.steps),
            1.0 - SQUARE_DECAY**moments.steps,
            config.adam_epsilon,
            config.gradient_clip,
        )
        _descend(weights, gradient.numpy(), moments.mean, moments.square, tuple(map(np.float32, settings)))

    def state_dict(self) -> dict[str, Any]:
        """Means, squares and counts, by the names of the parameters."""
        saved: dict[str, Any] = {}
        for number, moments in self._moments.items():
            means, squares = (self.blocks[number].split(vector) for vector in (moments.mean, moments.square))
            for name in self.blocks[number].parameters:
                saved[name] = {"mean": means[name].copy(), "square": squares[name].copy(), "steps": moments.steps}
        return saved

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue with saved moments."""
        self._moments = {}
        for number, block in enumerate(self.blocks):
            if any(name in saved for name in block.parameters):
                found = [saved[name] for name in block.parameters]
                mean, square = (np.concatenate([each[key].ravel() for each in found]) for key in ("mean", "square"))
                self._moments[number] = Moments(mean, square, int(found[0]["steps"]))
