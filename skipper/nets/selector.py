"""Spatial abstraction: full state to partial state sigma(s) (App., "Partial State Selector")."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional


class Selection(NamedTuple):
    """A partial state and which fields it was made of."""

    partial: Tensor  # (B, D)
    fields: Tensor  # (B, k) indices of the selected fields, x-major
    weights: Tensor  # (B, k) their attention, summing to 1


class LocalFieldSelector(nn.Module):
    """Attention with a constant query over all local fields of the state, of which the best k are taken.

    Since the query is constant, the key projection folds into one vector, and the value projection, being linear,
    may follow the weighted sum: ``folded`` computes the same function as the plain form with far fewer operations.
    """

    def __init__(self, channels: int, size: tuple[int, int], *, field: int, width: int, top: int) -> None:
        super().__init__()
        kernel = min(field, size[0]), min(field, size[1])
        self.grid = size[0] - kernel[0] + 1, size[1] - kernel[1] + 1
        self.kernel = kernel
        self.top = min(top, self.grid[0] * self.grid[1])
        self.fields = nn.Conv2d(channels, width, kernel)
        self.before = nn.LayerNorm(width)
        self.query = nn.Parameter(torch.randn(width))
        # No bias: it would add the same number to every score and change nothing.
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width)
        self.after = nn.LayerNorm(width)
        self.folded = True

    def select(self, state: Tensor) -> Selection:
        """(B, channels, W, H) to the partial state, with the fields that it attends to."""
        fields = self.before(self.fields(state).flatten(2).transpose(1, 2))  # (B, F, D)
        scale = self.query.shape[0] ** -0.5
        if self.folded:
            scores = fields @ (self.key.weight.T @ self.query * scale)  # (B, F)
        else:
            scores = self.key(fields) @ self.query * scale
        best, chosen = scores.topk(self.top, dim=-1)  # (B, k)
        weights = best.softmax(-1)
        index = chosen[..., None].expand(-1, -1, fields.shape[-1])
        if self.folded:
            mixed = self.value((weights[..., None] * fields.gather(1, index)).sum(1))
        else:
            mixed = (weights[..., None] * self.value(fields).gather(1, index)).sum(1)
        return Selection(functional.relu(self.after(mixed)), chosen, weights)

    def forward(self, state: Tensor) -> Tensor:
        """(B, channels, W, H) to sigma(s), (B, D)."""
        return self.select(state).partial


class WholeState(nn.Module):
    """The ablation without spatial abstraction: one linear layer on all of the state."""

    def __init__(self, channels: int, size: tuple[int, int], *, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(channels * size[0] * size[1], width)

    def forward(self, state: Tensor) -> Tensor:
        """(B, channels, W, H) to (B, D)."""
        return self.project(state.flatten(1))
