"""The losses of a pairwise head on some hundred pairs, and their gradient.

For so few pairs, what the network library does around the arithmetic takes longer than the arithmetic: it visits the
pairs in a dozen operations per head and again in as many gradients. Here the products stay with the library, and
everything between two of them is one pass over the pairs.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from skipper.nets.heads import PairwiseHead, join_pairs
from skipper.runtime.jit import kernel


def pair_losses(
    head: PairwiseHead, partial: Tensor, source: Tensor, target: Tensor, action: Tensor, aim: Tensor
) -> Tensor:
    """(P,) losses of a head's histograms against scalars ``aim``; ``source`` and ``target`` index ``partial`` (M, D).

    The same as ``scalar_loss`` of the histograms that the head gives for these pairs and actions.
    """
    columns = (source, target, action, aim)
    assert len({column.shape for column in columns}) == 1, [tuple(column.shape) for column in columns]
    losses: Tensor = _PairLosses.apply(partial, *head.layers.parameters(), (*columns, head.support))
    return losses


class _PairLosses(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, partial: Tensor, *arguments: Any) -> Tensor:
        *layers, (source, target, action, aim, support) = arguments
        first, first_bias, second, second_bias, last, last_bias = layers
        width = partial.shape[1]
        leave = torch.addmm(first_bias, partial, first[:, :width].T)
        reach = partial @ first[:, width:].T
        joined = torch.from_numpy(join_pairs(leave.numpy(), reach.numpy(), source.numpy(), target.numpy()))
        hidden = torch.addmm(second_bias, joined, second.T).relu_()
        logits = torch.addmm(last_bias, hidden, last.T)
        losses, slope = _compare(logits.numpy(), action.numpy(), aim.numpy(), support.numpy())
        context.save_for_backward(partial, first, second, last, joined, hidden, torch.from_numpy(slope))
        context.ends = source.numpy(), target.numpy()
        return torch.from_numpy(losses)

    @staticmethod
    @once_differentiable
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        partial, first, second, last, joined, hidden, slope = context.saved_tensors
        width = partial.shape[1]
        at_logits = slope * gradients[0][:, None]
        at_hidden = torch.from_numpy(_through_relu((at_logits @ last).numpy(), hidden.numpy()))
        at_joined = (at_hidden @ second).numpy()
        leave, reach = map(torch.from_numpy, _at_states(at_joined, joined.numpy(), *context.ends, len(partial)))
        of_layers = (
            torch.cat([leave.T @ partial, reach.T @ partial], 1),
            leave.sum(0),
            at_hidden.T @ joined,
            at_hidden.sum(0),
            at_logits.T @ hidden,
            at_logits.sum(0),
        )
        return torch.addmm(leave @ first[:, :width], reach, first[:, width:]), *of_layers, None


@kernel
def _compare(logits, action, aim, support):
    """Losses (P,) of the histograms of ``action`` among ``logits`` (P, A * K), and their derivatives (P, A * K).

    The loss is KL(wanted || histogram), where the wanted histogram holds the two bins around a scalar of ``aim``.
    """
    bins, one = len(support), np.float32(1.0)
    losses, slope = np.empty(len(action), np.float32), np.zeros_like(logits)
    for pair in range(len(action)):
        place = action[pair] * bins
        given, found = logits[pair, place : place + bins], slope[pair, place : place + bins]
        highest, total = given.max(), np.float32(0.0)
        for each in range(bins):
            found[each] = np.exp(given[each] - highest)
            total += found[each]
        for each in range(bins):
            found[each] /= total
        scale = highest + np.log(total)
        value = min(max(aim[pair], support[0]), support[-1])
        right = min(max(np.searchsorted(support, value), 1), bins - 1)
        share = (value - support[right - 1]) / (support[right] - support[right - 1])
        losses[pair] = 0.0
        for each, wanted in ((right - 1, one - share), (right, share)):
            found[each] -= wanted
            if wanted != 0.0:
                losses[pair] += wanted * (np.log(wanted) - given[each] + scale)
    return losses, slope


@kernel
def _through_relu(gradient, output):
    """The gradient before a ReLU with this output, in place."""
    for row in range(len(gradient)):
        for unit in range(gradient.shape[1]):
            if output[row, unit] <= 0.0:
                gradient[row, unit] = 0.0
    return gradient


@kernel
def _at_states(gradient, joined, source, target, states):
    """Gradients (2, M, H) of what states add to ``joined`` (P, H) as sources and as targets."""
    found = np.zeros((2, states, gradient.shape[1]), np.float32)
    for pair in range(len(source)):
        leave, reach = found[0, source[pair]], found[1, target[pair]]
        for unit in range(gradient.shape[1]):
            slope = gradient[pair, unit] if joined[pair, unit] > 0.0 else np.float32(0.0)
            leave[unit] += slope
            reach[unit] += slope
    return found
