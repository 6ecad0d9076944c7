"""Adam with decoupled weight decay and gradients clipped by their norm.

For the 111 parameters of Director's networks PyTorch's fused AdamW with clipping takes 6 ms on a CPU, these kernels 3.5
(lab book 65), and importing it takes over a second.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skipper.agents import optimizer as common
from skipper.agents.director.config import DirectorLearningConfig
from skipper.runtime.jit import kernel
from skipper.types import Array

MEAN, SQUARE, STEP = "exp_avg", "exp_avg_sq", "step"  # PyTorch's names of Adam's state
MEAN_DECAY, SQUARE_DECAY, LANES = common.MEAN_DECAY, common.SQUARE_DECAY, common.LANES


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
    """Optimises one network, all of whose parameters take part in every step; only matrices and kernels decay."""

    def __init__(self, network: nn.Module, config: DirectorLearningConfig) -> None:
        self._named = {name: each for name, each in network.named_parameters() if each.requires_grad}
        self._config = config
        self._on_cpu = all(each.is_cpu for each in self._named.values())
        self._steps = 0
        self._moments = {name: (torch.zeros_like(each), torch.zeros_like(each)) for name, each in self._named.items()}

    @property
    def _parameters(self) -> list[nn.Parameter]:
        return list(self._named.values())

    def step(self, loss: Tensor) -> None:
        """One gradient step; the gradient must be finite."""
        for each in self._parameters:
            each.grad = None
        loss.backward()
        if self._on_cpu:
            self._step_on_cpu()
        else:
            self._step_on_device()

    def _step_on_cpu(self) -> None:
        gradients = {name: _vector(_gradient(each).contiguous()) for name, each in self._named.items()}
        norm = float(np.sqrt(sum(_square_sum(gradient) for gradient in gradients.values())))
        common.check_gradients([torch.tensor(norm)])
        self._steps += 1
        scale = min(1.0, self._config.gradient_clip / (norm + 1e-6))
        settings = {decays: tuple(map(np.float32, (scale, *self._settings(decays)))) for decays in (False, True)}
        for name, weights in self._named.items():
            mean, square = map(_vector, self._moments[name])
            _adamw(_vector(weights.detach()), gradients[name], mean, square, settings[weights.ndim > 1])
        # The kernel's writes are invisible to autograd, which refuses graphs whose tensors have changed since.
        torch.autograd.graph.increment_version(self._parameters)

    @torch.no_grad()
    def _step_on_device(self) -> None:
        """The same where there are no kernels: on a graphics card."""
        common.check_gradients([nn.utils.clip_grad_norm_(self._parameters, self._config.gradient_clip)])
        self._steps += 1
        for decays in (False, True):
            names = [name for name, each in self._named.items() if (each.ndim > 1) == decays]
            if not names:
                continue
            size, correction, epsilon, decay = self._settings(decays)
            weights: list[Tensor] = [self._named[name] for name in names]
            gradients = [_gradient(each) for each in weights]
            means, squares = map(list, zip(*(self._moments[name] for name in names), strict=True))
            torch._foreach_lerp_(means, gradients, 1.0 - MEAN_DECAY)
            torch._foreach_mul_(squares, SQUARE_DECAY)
            torch._foreach_addcmul_(squares, gradients, gradients, 1.0 - SQUARE_DECAY)
            roots = torch._foreach_sqrt(torch._foreach_div(squares, correction))
            torch._foreach_add_(roots, epsilon)
            torch._foreach_mul_(weights, decay)
            torch._foreach_addcdiv_(weights, means, roots, -size)

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


def _gradient(parameter: Tensor) -> Tensor:
    assert parameter.grad is not None, f"a parameter of shape {tuple(parameter.shape)} has no gradient"
    return parameter.grad


def _vector(tensor: Tensor) -> Array:
    """The numbers of a contiguous tensor of the CPU, in its own memory."""
    return tensor.view(-1).numpy()
