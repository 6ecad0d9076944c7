"""Twin of the losses of a pairwise head on a few hundred pairs, with their gradients.

For so few pairs the overhead of PyTorch's dozen operations per head, and as many gradients, exceeds the arithmetic.
Here PyTorch computes the products, and everything between two of them is one pass over the pairs.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from skipper.nets.compiled.exact_types import has_exact_types
from skipper.nets.heads import PAIRWISE_HEAD, PairwiseHead, join_pairs
from skipper.runtime.jit import kernel


def supports(head: nn.Module) -> bool:
    """Whether ``pair_losses`` computes the losses of the head's own logits."""
    return has_exact_types(head, PAIRWISE_HEAD)


def pair_losses(
    head: PairwiseHead, partial: Tensor, source: Tensor, target: Tensor, action: Tensor, value: Tensor
) -> Tensor:
    """(P,) losses of a head's histograms against ``value``; ``source`` and ``target`` index ``partial`` (M, D).

    The same as ``losses.scalar_loss`` of the head's logits for these pairs and actions where ``value`` (P,) are
    scalars, and as ``losses.histogram_loss`` where (P, K) are histograms.
    """
    columns = (source, target, action, value)
    assert len({len(column) for column in columns}) == 1, [tuple(column.shape) for column in columns]
    assert value.ndim == 1 or value.shape[1] == len(head.support), value.shape
    losses: Tensor = _PairLosses.apply(partial, *head.layers.parameters(), (*columns, head.support))
    return losses


class _PairLosses(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, partial: Tensor, *arguments: Any) -> Tensor:
        *layers, (source, target, action, value, support) = arguments
        first, first_bias, second, second_bias, last, last_bias = layers
        width = partial.shape[1]
        of_source = torch.addmm(first_bias, partial, first[:, :width].T)
        of_target = partial @ first[:, width:].T
        joined = torch.from_numpy(join_pairs(of_source.numpy(), of_target.numpy(), source.numpy(), target.numpy()))
        hidden = torch.addmm(second_bias, joined, second.T).relu_()
        logits = torch.addmm(last_bias, hidden, last.T)
        wanted = _two_hot(value.numpy(), support.numpy()) if value.ndim == 1 else value.numpy()
        losses, slope = _compare(logits.numpy(), action.numpy(), wanted)
        context.save_for_backward(partial, first, second, last, joined, hidden, torch.from_numpy(slope))
        context.endpoints = source.numpy(), target.numpy()
        return torch.from_numpy(losses)

    @staticmethod
    @once_differentiable
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        partial, first, second, last, joined, hidden, slope = context.saved_tensors
        width = partial.shape[1]
        at_logits = slope * gradients[0][:, None]
        at_hidden = torch.from_numpy(_through_relu((at_logits @ last).numpy(), hidden.numpy()))
        at_joined = (at_hidden @ second).numpy()
        at_states = _at_states(at_joined, joined.numpy(), *context.endpoints, len(partial))
        of_source, of_target = map(torch.from_numpy, at_states)
        of_layers = (
            torch.cat([of_source.T @ partial, of_target.T @ partial], 1),
            of_source.sum(0),
            at_hidden.T @ joined,
            at_hidden.sum(0),
            at_logits.T @ hidden,
            at_logits.sum(0),
        )
        return torch.addmm(of_source @ first[:, :width], of_target, first[:, width:]), *of_layers, None


@kernel
def _two_hot(values, support):
    """(P,) scalars to (P, K) histograms with these means, as ``losses.two_hot``."""
    histogram = np.zeros((len(values), len(support)), np.float32)
    for pair in range(len(values)):
        value = min(max(values[pair], support[0]), support[-1])
        right = min(max(np.searchsorted(support, value), 1), len(support) - 1)
        share = (value - support[right - 1]) / (support[right] - support[right - 1])
        histogram[pair, right - 1], histogram[pair, right] = np.float32(1.0) - share, share
    return histogram


@kernel
def _compare(logits, action, histogram):
    """Losses (P,) of the histograms of ``action`` among ``logits`` (P, A * K), and their derivatives (P, A * K).

    The loss is KL(target || prediction), for the target ``histogram`` (P, K).
    """
    bins = histogram.shape[1]
    losses, slope = np.empty(len(action), np.float32), np.zeros_like(logits)
    for pair in range(len(action)):
        begin = action[pair] * bins
        given, derivative = logits[pair, begin : begin + bins], slope[pair, begin : begin + bins]
        highest, total = given.max(), np.float32(0.0)
        for atom in range(bins):
            derivative[atom] = np.exp(given[atom] - highest)
            total += derivative[atom]
        scale = highest + np.log(total)
        losses[pair] = 0.0
        for atom in range(bins):
            target = histogram[pair, atom]
            derivative[atom] = derivative[atom] / total - target
            if target > 0.0:
                losses[pair] += target * (np.log(target) - given[atom] + scale)
    return losses, slope


@kernel
def _through_relu(gradient, output):
    """The gradient before a ReLU with this ``output``, in place."""
    for row in range(len(gradient)):
        for unit in range(gradient.shape[1]):
            if output[row, unit] <= 0.0:
                gradient[row, unit] = 0.0
    return gradient


@kernel
def _at_states(gradient, joined, source, target, states):
    """Gradients (2, M, H) of the projections of states as sources and as targets, from that of ``joined`` (P, H)."""
    at_states = np.zeros((2, states, gradient.shape[1]), np.float32)
    for pair in range(len(source)):
        of_source, of_target = at_states[0, source[pair]], at_states[1, target[pair]]
        for unit in range(gradient.shape[1]):
            slope = gradient[pair, unit] if joined[pair, unit] > 0.0 else np.float32(0.0)
            of_source[unit] += slope
            of_target[unit] += slope
    return at_states
