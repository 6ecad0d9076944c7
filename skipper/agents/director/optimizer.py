"""Adam with decoupled weight decay and gradients clipped by their norm, one pass over each parameter.

PyTorch's fused Adam with clipping takes three times as long on a CPU for as many small parameters, and importing it
takes over a second.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skipper.agents import optimizer
from skipper.agents.director.config import DirectorLearningConfig
from skipper.agents.optimizer import LANES, MEAN_DECAY, SQUARE_DECAY
from skipper.runtime.jit import kernel
from skipper.types import Array

MEAN, SQUARE, STEP = "exp_avg", "exp_avg_sq", "step"  # PyTorch's names of Adam's state


@kernel
def _square_sum(gradient):
    """The sum of the squares of a gradient."""
    # Independent sums: a single one would make every addition wait for the one before it.
    sums, whole = np.zeros(LANES), len(gradient) // LANES * LANES
    for begin in range(0, whole, LANES):
        for lane in range(LANES):
            sums[lane] += gradient[begin + lane] * gradient[begin + lane]
    total = sums.sum()
    for index in range(whole, len(gradient)):
        total += gradient[index] * gradient[index]
    return total


@kernel
def _adamw(weights, gradient, mean, square, settings):
    """One step in place; ``settings``: the gradient's scale, step size, bias correction of squares, epsilon, decay."""
    scale, size, correction, epsilon, decay = settings
    keep_mean, keep_square, one = np.float32(MEAN_DECAY), np.float32(SQUARE_DECAY), np.float32(1.0)
    for index in range(len(weights)):
        slope = scale * gradient[index]
        mean[index] = keep_mean * mean[index] + (one - keep_mean) * slope
        square[index] = keep_square * square[index] + (one - keep_square) * slope * slope
        change = size * mean[index] / (np.sqrt(square[index] / correction) + epsilon)
        weights[index] = decay * weights[index] - change


class NetworkOptimizer:
    """Optimises one network; only matrices and kernels decay."""

    def __init__(self, network: nn.Module, config: DirectorLearningConfig) -> None:
        self._named = {name: each for name, each in network.named_parameters() if each.requires_grad}
        self._parameters = list(self._named.values())
        self._config = config
        self._on_cpu = self._parameters[0].is_cpu
        self._steps = 0
        self._moments = {name: (torch.zeros_like(each), torch.zeros_like(each)) for name, each in self._named.items()}
        if self._on_cpu:
            self._vectors = {name: tuple(map(_vector, moments)) for name, moments in self._moments.items()}

    def step(self, loss: Tensor) -> None:
        """One gradient step; the gradient must be finite."""
        for each in self._parameters:
            each.grad = None
        loss.backward()
        self._steps += 1
        if self._on_cpu:
            self._step_on_cpu()
        else:
            self._step_on_device()

    def _step_on_cpu(self) -> None:
        gradients = {name: _vector(each.grad) for name, each in self._named.items() if each.grad is not None}
        norm = float(np.sqrt(sum(_square_sum(gradient) for gradient in gradients.values())))
        optimizer.check_gradients([torch.tensor(norm)])
        scale = min(1.0, self._config.gradient_clip / (norm + 1e-6))
        settings = {decays: tuple(map(np.float32, (scale, *self._settings(decays)))) for decays in (False, True)}
        for name, gradient in gradients.items():
            weights = self._named[name]
            _adamw(_vector(weights.detach()), gradient, *self._vectors[name], settings[weights.ndim > 1])
        # The kernel's writes are invisible to the library.
        torch.autograd.graph.increment_version(self._parameters)

    @torch.no_grad()
    def _step_on_device(self) -> None:
        """The same where there are no kernels: on a graphics card."""
        optimizer.check_gradients([nn.utils.clip_grad_norm_(self._parameters, self._config.gradient_clip)])
        for name, each in self._named.items():
            if each.grad is None:
                continue
            size, correction, epsilon, decay = self._settings(each.ndim > 1)
            mean, square = self._moments[name]
            mean.lerp_(each.grad, 1.0 - MEAN_DECAY)
            square.lerp_(each.grad.square(), 1.0 - SQUARE_DECAY)
            each.mul_(decay).addcdiv_(mean, (square / correction).sqrt_().add_(epsilon), value=-size)

    def _settings(self, decays: bool) -> tuple[float, float, float, float]:
        """Step size, bias correction of squares, epsilon, and what weight decay leaves of a parameter."""
        config = self._config
        size = config.learning_rate / (1.0 - MEAN_DECAY**self._steps)
        decay = 1.0 - config.learning_rate * config.weight_decay if decays else 1.0
        return size, 1.0 - SQUARE_DECAY**self._steps, config.adam_epsilon, decay

    def state_dict(self) -> dict[str, Any]:
        """Moments and step counts, by parameter name."""
        step = np.float32(self._steps)
        return {
            name: {STEP: np.array(step), MEAN: mean.cpu().numpy().copy(), SQUARE: square.cpu().numpy().copy()}
            for name, (mean, square) in self._moments.items()
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue with saved moments."""
        for name, entries in saved.items():
            for moment, key in zip(self._moments[name], (MEAN, SQUARE), strict=True):
                moment.copy_(torch.from_numpy(np.array(entries[key])))
            self._steps = int(entries[STEP])


def _vector(tensor: Tensor) -> Array:
    """The numbers of a tensor of the CPU; of its own memory if it is contiguous."""
    return tensor.contiguous().view(-1).numpy()
