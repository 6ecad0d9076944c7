"""Distributional heads on partial states (App., "Estimators")."""

from functools import cache

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from skipper.nets.layers import mlp
from skipper.runtime.jit import kernel

FAVOUR = 6.0  # logits: of 16 bins the favoured one then holds 0.96


class PairwiseHead(nn.Module):
    """A histogram per action from a pair of partial states: logits (..., A, K) over ``support`` (K,).

    The first layer acts on the concatenated pair, so it splits into a part per state: n states need n projections
    and not n * n. ``source`` and ``target`` are these parts, ``join`` the rest; ``finish`` is what follows their sum.
    """

    support: Tensor

    def __init__(
        self,
        width: int,
        *,
        hidden: int,
        actions: int,
        support: Tensor,
        favoured: int | None = None,
        scaled: bool = False,
    ) -> None:
        """``favoured`` is a bin that nearly all of the histogram falls into before anything is learned."""
        super().__init__()
        self.actions = actions
        self.layers = mlp(2 * width, hidden, actions * len(support), scaled=scaled)
        self.width = width
        self.register_buffer("support", support)
        if favoured is not None:
            bias = self.layers[-1].bias
            assert isinstance(bias, Tensor)
            bias.data.view(actions, len(support))[:, favoured] += FAVOUR

    def source(self, partial: Tensor) -> Tensor:
        """(..., D) to (..., hidden): what the state that is left adds to the first layer, bias included."""
        weight, bias = self.first_layer()
        return functional.linear(partial, weight[:, : self.width], bias)

    def target(self, partial: Tensor) -> Tensor:
        """(..., D) to (..., hidden): what the state that is aimed at adds to the first layer."""
        return functional.linear(partial, self.first_layer()[0][:, self.width :])

    def join(self, source: Tensor, target: Tensor) -> Tensor:
        """Projections that broadcast with each other, to logits (..., A, K)."""
        return self.finish(functional.relu(source + target, inplace=True))

    def finish(self, hidden: Tensor) -> Tensor:
        """What comes after the first layer: (..., hidden) to logits (..., A, K)."""
        # In place: for thousands of pairs, writing them to memory takes longer than the arithmetic.
        hidden = functional.relu(self.layers[2](hidden), inplace=True)
        return self.layers[4](hidden).unflatten(-1, (self.actions, len(self.support)))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Partial states (B, D) and (B, D), to logits (B, A, K)."""
        return self.join(self.source(source), self.target(target))

    def expectation(self, logits: Tensor, support: Tensor | None = None) -> Tensor:
        """(..., K) logits to the mean of their histogram over the head's support, or over another in its place."""
        return logits.softmax(-1) @ (self.support if support is None else support)

    @torch.no_grad()
    def expect_pairs(self, partial: Tensor, source: Tensor, target: Tensor) -> Tensor:
        """(P, A) expectations of pairs, given as indices into partial states (M, D)."""
        projections = self.source(partial).numpy(), self.target(partial).numpy()
        joined = join_pairs(*projections, source.numpy(), target.numpy())
        return self.expectation(self.finish(torch.from_numpy(joined)))

    def first_layer(self) -> tuple[Tensor, Tensor]:
        """Its weights (hidden, 2 D), first those of the state that is left, and its bias (hidden,)."""
        layer = self.layers[0]
        assert isinstance(layer, nn.Linear)
        return layer.weight, layer.bias


@kernel
def join_pairs(leave, reach, source, target):
    """(P, H) the hidden layer of pairs (P,), given what the states (M, H) at their ends add to it."""
    hidden = np.empty((len(source), leave.shape[1]), np.float32)
    for pair in range(len(source)):
        one, two = leave[source[pair]], reach[target[pair]]
        for unit in range(leave.shape[1]):
            hidden[pair, unit] = max(one[unit] + two[unit], np.float32(0.0))
    return hidden


def unit_support(bins: int) -> Tensor:
    """Values and cumulative rewards: evenly from 0 to 1."""
    return torch.linspace(0.0, 1.0, bins)


def distance_support(bins: int) -> Tensor:
    """Distances: 1 to ``bins`` steps, the last meaning that or more."""
    return torch.arange(1.0, bins + 1.0)


@cache
def discount_support(bins: int, discount: float) -> Tensor:
    """The discounts of the distances: put in place of their support, the histogram gives E[discount ** D]."""
    return discount ** distance_support(bins)
