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

    ``select`` computes the same function as ``plain`` with far fewer operations. Since the query is constant, the key
    projection folds into one vector, and the value projection, being linear, may follow the weighted sum. And since
    only the selected fields go on, only they need gradients: all fields are computed once without, to see which these
    are, and the few of them again with.
    """

    cells: Tensor

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
        # (F, kernel cells) the cells of every field, as indices into the W * H cells of the state
        whole = torch.arange(size[0] * size[1]).view(size)
        windows = whole.unfold(0, kernel[0], 1).unfold(1, kernel[1], 1)
        self.register_buffer("cells", windows.reshape(self.grid[0] * self.grid[1], -1), persistent=False)

    def select(self, state: Tensor) -> Selection:
        """(B, channels, W, H) to the partial state, with the fields that it attends to."""
        with torch.no_grad():
            fields = self.before(self.fields(state).flatten(2).transpose(1, 2))  # (B, F, D)
            chosen = self._scores(fields).topk(self.top, dim=-1).indices  # (B, k)
        if torch.is_grad_enabled():
            taken = self.before(self._fields_at(state, chosen))  # (B, k, D)
        else:
            taken = fields.gather(1, chosen[..., None].expand(-1, -1, fields.shape[-1]))
        weights = self._scores(taken).softmax(-1)
        mixed = self.value((weights[..., None] * taken).sum(1))
        return Selection(functional.relu(self.after(mixed)), chosen, weights)

    def plain(self, state: Tensor) -> Selection:
        """The layers one after the other; what ``select`` is tested against."""
        fields = self.before(self.fields(state).flatten(2).transpose(1, 2))  # (B, F, D)
        best, chosen = (self.key(fields) @ self.query * self._scale).topk(self.top, dim=-1)  # (B, k)
        weights = best.softmax(-1)
        index = chosen[..., None].expand(-1, -1, fields.shape[-1])
        mixed = (weights[..., None] * self.value(fields).gather(1, index)).sum(1)
        return Selection(functional.relu(self.after(mixed)), chosen, weights)

    @property
    def _scale(self) -> float:
        return self.query.shape[0] ** -0.5

    def _scores(self, fields: Tensor) -> Tensor:
        """(..., D) normalised fields to their attention before the softmax."""
        return fields @ self.scorer()

    def scorer(self) -> Tensor:
        """(D,) key projection and query in one: the score of a normalised field is its product with this."""
        return self.key.weight.T @ self.query * self._scale

    def _fields_at(self, state: Tensor, chosen: Tensor) -> Tensor:
        """(B, channels, W, H) and fields (B, k) to what the convolution gives there, (B, k, D)."""
        B, C, W, H = state.shape  # noqa: N806
        rows = state.permute(0, 2, 3, 1).reshape(B * W * H, C)
        index = self.cells[chosen] + torch.arange(B)[:, None, None] * (W * H)  # (B, k, kernel cells)
        patches = rows.index_select(0, index.flatten()).view(B, chosen.shape[1], -1)
        return functional.linear(patches, self.fields.weight.permute(0, 2, 3, 1).flatten(1), self.fields.bias)

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
