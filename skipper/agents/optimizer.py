"""Adam on parameters that are contiguous in memory, in one pass over them (App., "Training").

PyTorch's fused Adam with clipping and a check of the gradients takes longer, and importing it takes over a second.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from skipper.config import LearningConfig
from skipper.runtime.jit import kernel
from skipper.types import Array

MEAN_DECAY, SQUARE_DECAY = 0.9, 0.999  # Adam's betas
LANES = 16  # sums that a kernel keeps side by side


class NotFiniteError(RuntimeError):
    """A loss or a gradient became infinite or not a number."""


def finite_value(loss: Tensor) -> float:
    """A loss as a number, which must be finite."""
    value = float(loss.detach())
    if not np.isfinite(value):
        raise NotFiniteError(f"the loss became {value}")
    return value


def check_gradients(gradients: list[Tensor]) -> None:
    """Refuse gradients that are not finite."""
    if not all(torch.isfinite(gradient.sum()) for gradient in gradients):
        raise NotFiniteError("a gradient became infinite or not a number")


class Block(NamedTuple):
    """Parameters that are contiguous in one vector, so that one operation changes them all."""

    vector: Tensor
    parameters: dict[str, nn.Parameter]

    def split(self, vector: Array) -> dict[str, Array]:
        """The parts of a vector of this size that belong to the parameters, in their shapes."""
        named = zip(self.parameters.items(), self.slices(), strict=True)
        return {name: vector[rows].reshape(parameter.shape) for (name, parameter), rows in named}

    def slices(self) -> list[slice]:
        """Where each parameter is in the vector."""
        ends = np.cumsum([0, *(parameter.numel() for parameter in self.parameters.values())]).tolist()
        return [slice(begin, end) for begin, end in pairwise(ends)]

    def gradient(self) -> Tensor | None:
        """The gradient of the whole vector; None where no parameter has one."""
        gradients = [parameter.grad for parameter in self.parameters.values()]
        if all(gradient is None for gradient in gradients):
            return None
        pairs = zip(self.parameters.values(), gradients, strict=True)
        return torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for p, g in pairs])


@torch.no_grad()
def contiguous_blocks(network: nn.Module) -> list[Block]:
    """Make the parameters of each direct submodule of a network contiguous: one block each."""
    parts: dict[str, dict[str, nn.Parameter]] = {}
    for name, parameter in network.named_parameters():
        parts.setdefault(name.partition(".")[0], {})[name] = parameter
    blocks = []
    for parameters in parts.values():
        block = Block(torch.cat([parameter.detach().flatten() for parameter in parameters.values()]), parameters)
        for parameter, rows in zip(parameters.values(), block.slices(), strict=True):
            parameter.data = block.vector[rows].view(parameter.shape)
        blocks.append(block)
    return blocks


@dataclass
class Moments:
    """Adam's moving averages of a block's gradients and of their squares."""

    mean: Tensor
    square: Tensor
    steps: int = 0


@kernel
def _adam(weights, gradient, mean, square, settings):
    """One step of Adam in place; ``settings`` are step size, bias correction of the squares, epsilon and clip."""
    size, correction, epsilon, clip = settings
    keep_mean, keep_square, one = np.float32(MEAN_DECAY), np.float32(SQUARE_DECAY), np.float32(1.0)
    for index in range(len(weights)):
        slope = min(max(gradient[index], -clip), clip)
        mean[index] = keep_mean * mean[index] + (one - keep_mean) * slope
        square[index] = keep_square * square[index] + (one - keep_square) * slope * slope
        weights[index] -= size * mean[index] / (np.sqrt(square[index] / correction) + epsilon)


@kernel
def _squared_surprise(slope, square, settings):
    """Square of one entry of a gradient over the square that Adam expects once it has learned from it."""
    _, correction, epsilon, clip = settings
    keep_square, slope = np.float32(SQUARE_DECAY), min(max(slope, -clip), clip)
    expected = (keep_square * square + (np.float32(1.0) - keep_square) * slope * slope) / correction
    return slope * slope / max(expected, epsilon * epsilon)


@kernel
def _surprise(gradient, square, settings):
    """Root mean square of a gradient that is about to be learned from, each entry over the size that Adam expects."""
    # Independent sums: a single one would make every addition wait for the one before it.
    sums, whole = np.zeros(LANES), len(gradient) // LANES * LANES
    for begin in range(0, whole, LANES):
        for lane in range(LANES):
            sums[lane] += _squared_surprise(gradient[begin + lane], square[begin + lane], settings)
    total = sums.sum()
    for index in range(whole, len(gradient)):
        total += _squared_surprise(gradient[index], square[index], settings)
    return np.sqrt(total / len(gradient))


def _adam_on_device(
    weights: Tensor,
    gradient: Tensor,
    mean: Tensor,
    square: Tensor,
    parameters: list[slice],
    settings: tuple[float, float, float, float],
    update_clip: float,
) -> None:
    """The same step where there are no kernels: on a graphics card."""
    size, correction, epsilon, clip = settings
    slope = gradient.clamp(-clip, clip)
    mean.lerp_(slope, 1.0 - MEAN_DECAY)
    square.lerp_(slope.square(), 1.0 - SQUARE_DECAY)
    expected = square / correction
    step = size * mean / (expected.sqrt() + epsilon)
    if update_clip:
        surprise = slope.square() / expected.clamp(min=epsilon * epsilon)
        for rows in parameters:
            step[rows] /= (surprise[rows].mean().sqrt() / update_clip).clamp(min=1.0)
    weights.sub_(step)


class Optimizer:
    """Adam with gradients clipped by value, for all parameters of a network.

    A block whose parameters have no gradient is not changed, so parts of a network can be updated separately.
    """

    def __init__(self, network: nn.Module, config: LearningConfig) -> None:
        self.blocks = contiguous_blocks(network)
        self._parameters = list(network.parameters())
        self._config = config
        self._moments: dict[int, Moments] = {}  # by the block's index; a block without gradients so far has none

    def step(self, loss: Tensor, rate: float = 1.0) -> float:
        """One step at the fraction ``rate`` of the learning rate; returns the loss, which must be finite."""
        value = finite_value(loss)
        for parameter in self._parameters:
            parameter.grad = None
        loss.backward()
        gradients = {index: block.gradient() for index, block in enumerate(self.blocks)}
        found = {index: gradient for index, gradient in gradients.items() if gradient is not None}
        check_gradients(list(found.values()))
        for index, gradient in found.items():
            self._update_block(index, gradient, rate)
        # The kernel's writes are invisible to the library, and caches watch the versions of the weights.
        torch.autograd.graph.increment_version(self._parameters)
        return value

    def _update_block(self, index: int, gradient: Tensor, rate: float) -> None:
        block, config = self.blocks[index], self._config
        if index not in self._moments:
            self._moments[index] = Moments(torch.zeros_like(block.vector), torch.zeros_like(block.vector))
        moments = self._moments[index]
        moments.steps += 1
        settings = (
            rate * config.learning_rate / (1.0 - MEAN_DECAY**moments.steps),
            1.0 - SQUARE_DECAY**moments.steps,
            config.adam_epsilon,
            config.gradient_clip,
        )
        vectors = (block.vector, gradient, moments.mean, moments.square)
        if not block.vector.is_cpu:
            _adam_on_device(*vectors, block.slices(), settings, config.update_clip)
            return
        numbers = tuple(map(np.float32, settings))
        weights, slope, mean, square = (vector.numpy() for vector in vectors)
        if not config.update_clip:
            _adam(weights, slope, mean, square, numbers)
            return
        # Gradients that are larger than those before move each parameter less, not more.
        for rows in block.slices():
            surprise = _surprise(slope[rows], square[rows], numbers)
            size = numbers[0] / np.float32(max(surprise / config.update_clip, 1.0))
            _adam(weights[rows], slope[rows], mean[rows], square[rows], (size, *numbers[1:]))

    def state_dict(self) -> dict[str, Any]:
        """Means, squares and step counts, by parameter name."""
        saved: dict[str, Any] = {}
        for index, moments in self._moments.items():
            vectors = (vector.cpu().numpy() for vector in (moments.mean, moments.square))
            means, squares = (self.blocks[index].split(vector) for vector in vectors)
            for name in self.blocks[index].parameters:
                saved[name] = {"mean": means[name].copy(), "square": squares[name].copy(), "steps": moments.steps}
        return saved

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue with saved moments."""
        self._moments = {}
        for index, block in enumerate(self.blocks):
            if any(name in saved for name in block.parameters):
                found = [saved[name] for name in block.parameters]
                loaded = (np.concatenate([each[key].ravel() for each in found]) for key in ("mean", "square"))
                mean, square = (torch.from_numpy(vector).to(block.vector.device) for vector in loaded)
                self._moments[index] = Moments(mean, square, int(found[0]["steps"]))
