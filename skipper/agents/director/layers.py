"""Layers, transforms and one-hot samples that all networks of Director share (Hafner et al. 2022, public code)."""

from math import sqrt
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

NORM_EPSILON = 1e-3
OUTPUT_SCALE = 0.1  # variance of the weights of output layers, relative to Glorot's


def symlog(x: Tensor) -> Tensor:
    """sign(x) ln(1 + |x|): compresses large values."""
    return x.sign() * x.abs().log1p()


def symexp(x: Tensor) -> Tensor:
    """The inverse of ``symlog``."""
    return x.sign() * x.abs().expm1()


class Dense(nn.Module):
    """A linear layer without bias, layer normalisation, and ELU."""

    def __init__(self, inputs: int, units: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, units, bias=False)
        nn.init.xavier_uniform_(self.linear.weight)
        self.norm = nn.LayerNorm(units, eps=NORM_EPSILON)

    def forward(self, x: Tensor) -> Tensor:
        """(..., inputs) to (..., units)."""
        return self.activate(self.linear(x))

    def activate(self, x: Tensor) -> Tensor:
        """What follows the linear layer, whose parts may be computed elsewhere."""
        return functional.elu(self.norm(x))


def output_layer(inputs: int, outputs: int) -> nn.Linear:
    """A linear layer with small initial weights: predictions start near 0, distributions near uniform."""
    layer = nn.Linear(inputs, outputs)
    limit = sqrt(3.0 * OUTPUT_SCALE / ((inputs + outputs) / 2))
    nn.init.uniform_(layer.weight, -limit, limit)
    nn.init.zeros_(layer.bias)
    return layer


def mlp(inputs: int, layers: int, units: int, outputs: int) -> nn.Sequential:
    """``layers`` blocks of ``units``, and an output layer."""
    widths = [inputs, *[units] * layers]
    blocks = [Dense(before, units) for before in widths[:-1]]
    return nn.Sequential(*blocks, output_layer(widths[-1], outputs))


# Categorical variables: probabilities (..., C), one uniform number in [0, 1) per variable decides a sample.
# On a CPU, PyTorch's softmax is several times slower than these two where C is small, as it is here.


def few_class_softmax(logits: Tensor) -> Tensor:
    """(..., C) probabilities of logits (..., C)."""
    weights = (logits - logits.detach().amax(-1, keepdim=True)).exp()
    return weights / weights.sum(-1, keepdim=True)


def few_class_log_softmax(logits: Tensor) -> Tensor:
    """(..., C) logarithms of the probabilities of logits (..., C)."""
    shifted = logits - logits.detach().amax(-1, keepdim=True)
    return shifted - shifted.exp().sum(-1, keepdim=True).log()


def sample_one_hot(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """(..., C) one-hot samples by the inverse of the cumulative distribution, from ``uniform`` (...,)."""
    assert uniform.shape == probabilities.shape[:-1], (uniform.shape, probabilities.shape)
    index = torch.searchsorted(probabilities.cumsum(-1), uniform[..., None].contiguous(), right=True)
    index = index.clamp_(max=probabilities.shape[-1] - 1)  # sums may round to less than 1
    return torch.zeros_like(probabilities).scatter_(-1, index, 1.0)


class _StraightThrough(torch.autograd.Function):
    """A sample of a softmax, with the gradient of the softmax."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, uniform: Tensor) -> Tensor:
        probabilities = few_class_softmax(logits)
        ctx.save_for_backward(probabilities)
        return sample_one_hot(probabilities, uniform)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (probabilities,) = ctx.saved_tensors
        weighted = probabilities * gradient
        return torch.addcmul(weighted, probabilities, weighted.sum(-1, keepdim=True), value=-1), None


def straight_through(logits: Tensor, uniform: Tensor) -> Tensor:
    """(..., C) one-hot samples of logits (..., C), with the gradient of their probabilities (Bengio et al. 2013)."""
    return _StraightThrough.apply(logits, uniform)


def mode_one_hot(logits: Tensor) -> Tensor:
    """(..., C) one-hot of the most likely class."""
    return torch.zeros_like(logits).scatter_(-1, logits.argmax(-1, keepdim=True), 1.0)


def categorical_kl(log_p: Tensor, log_q: Tensor) -> Tensor:
    """KL divergences (...,) of distributions from others, both as logarithms of probabilities (..., C)."""
    return (log_p.exp() * (log_p - log_q)).sum(-1)


def balanced_kl(posterior: Tensor, prior: Tensor, balance: float) -> Tensor:
    """The divergence of (..., C) logits, (...,), of whose gradient the prior gets the share ``balance``."""
    log_p, log_q = few_class_log_softmax(posterior), few_class_log_softmax(prior)
    of_prior, of_posterior = categorical_kl(log_p.detach(), log_q), categorical_kl(log_p, log_q.detach())
    return balance * of_prior + (1 - balance) * of_posterior


class UniformNoise:
    """Random numbers in [0, 1) on the device of the networks, which does not decide them."""

    def __init__(self, rng: np.random.Generator, device: str) -> None:
        self.rng, self._device = rng, device

    def draw(self, *shape: int) -> Tensor:
        """Independent numbers of this shape."""
        return torch.from_numpy(self.rng.random(shape, dtype=np.float32)).to(self._device)
