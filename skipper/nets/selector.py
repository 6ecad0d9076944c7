"""Spatial abstraction: observation to partial state sigma(s) (App., "Partial State Selector")."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from skipper.config import NetworkConfig
from skipper.nets.encoder import StateEncoder
from skipper.nets.layers import observations_tensor
from skipper.types import Array, Attention, EnvironmentSpec


class Selection(NamedTuple):
    """A partial state and the fields that it was made of."""

    partial: Tensor  # (B, D)
    fields: Tensor  # (B, k) indices of the selected fields, x-major
    weights: Tensor  # (B, k) their attention, summing to 1


class LocalFieldSelector(nn.Module):
    """Attention with a constant query over all local fields of the state, restricted to the best k.

    Since the query is constant, the key projection folds into one vector; the value projection is linear and follows
    the weighted sum. Only the selected fields need gradients: all fields are computed without, to select the best, and
    these are computed again with gradients. With ``linear`` scores, which are those of fields before their
    normalisation, one convolution gives all scores, and only the selected fields are computed.
    """

    cells: Tensor

    def __init__(
        self, channels: int, size: tuple[int, int], *, field: int, width: int, top: int, linear: bool = False
    ) -> None:
        super().__init__()
        self.linear = linear
        kernel = min(field, size[0]), min(field, size[1])
        self.grid = size[0] - kernel[0] + 1, size[1] - kernel[1] + 1
        self.kernel = kernel
        self.top = min(top, self.grid[0] * self.grid[1])
        self.fields = nn.Conv2d(channels, width, kernel)
        self.before = nn.LayerNorm(width)
        self.query = nn.Parameter(torch.randn(width))
        # No bias: it would add the same number to every score.
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width)
        self.after = nn.LayerNorm(width)
        # (F, kernel cells) the cells of every field, as indices into the W * H cells of the state
        whole = torch.arange(size[0] * size[1]).view(size)
        windows = whole.unfold(0, kernel[0], 1).unfold(1, kernel[1], 1)
        self.register_buffer("cells", windows.reshape(self.grid[0] * self.grid[1], -1), persistent=False)

    def select(self, state: Tensor) -> Selection:
        """(B, channels, W, H) to the partial state, with the fields that it attends to."""
        if self.linear:
            with torch.no_grad():
                chosen = self._linear_scores(state).topk(self.top, dim=-1).indices  # (B, k)
            return self.attend(self._fields_at(state, chosen), chosen)
        chosen, taken = self._choose(state)
        return self._mix(chosen, taken, self._scores(taken))

    def attend(self, fields: Tensor, chosen: Tensor) -> Selection:
        """Attend to the ``chosen`` fields (B, k), by linear scores; ``fields`` (B, k, D) are not normalised."""
        return self._mix(chosen, self.before(fields), self._scores(fields))

    def _mix(self, chosen: Tensor, fields: Tensor, scores: Tensor) -> Selection:
        """The partial state made of the ``chosen`` fields (B, k), normalised (B, k, D), by their scores (B, k)."""
        weights = scores.softmax(-1)
        mixed = self.value((weights[..., None] * fields).sum(1))
        return Selection(functional.relu(self.after(mixed)), chosen, weights)

    def _choose(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """The best fields by their scores after normalisation: indices (B, k), and the normalised fields (B, k, D)."""
        with torch.no_grad():
            fields = self.before(self.fields(state).flatten(2).transpose(1, 2))  # (B, F, D)
            chosen = self._scores(fields).topk(self.top, dim=-1).indices  # (B, k)
        if torch.is_grad_enabled():
            return chosen, self.before(self._fields_at(state, chosen))
        return chosen, fields.gather(1, chosen[..., None].expand(-1, -1, fields.shape[-1]))

    def _linear_scores(self, state: Tensor) -> Tensor:
        """(B, channels, W, H) to the scores of all fields before normalisation, (B, F), but for a constant."""
        return functional.conv2d(state, self.linear_scorer()[None]).flatten(1)

    def linear_scorer(self) -> Tensor:
        """(channels, *kernel) the convolution that gives the scores of all fields before their normalisation."""
        return torch.einsum("d,dcij->cij", self.scorer(), self.fields.weight)

    def _scores(self, fields: Tensor) -> Tensor:
        """(..., D) fields to attention logits (...)."""
        return fields @ self.scorer()

    def scorer(self) -> Tensor:
        """(D,) key projection and query in one vector: its product with a field is the field's score."""
        return self.key.weight.T @ self.query * self.query.shape[0] ** -0.5

    def _fields_at(self, state: Tensor, chosen: Tensor) -> Tensor:
        """(B, channels, W, H) and field indices (B, k) to the convolution's output there, (B, k, D)."""
        B, C, W, H = state.shape  # noqa: N806
        rows = state.permute(0, 2, 3, 1).reshape(B * W * H, C)
        first = torch.arange(0, B * W * H, W * H, device=chosen.device)  # (B,) the states' first cells
        index = self.cells[chosen] + first[:, None, None]  # (B, k, kernel cells)
        return self.project(rows.index_select(0, index.flatten()).view(B, chosen.shape[1], -1))

    def project(self, patches: Tensor) -> Tensor:
        """(..., kernel cells * channels) to the convolution's output there, (..., D)."""
        return functional.linear(patches, self.fields.weight.permute(0, 2, 3, 1).flatten(1), self.fields.bias)

    def forward(self, state: Tensor) -> Tensor:
        """(B, channels, W, H) to sigma(s), (B, D)."""
        return self.select(state).partial


class WholeState(nn.Module):
    """The ablation without spatial abstraction: one linear layer on the whole state."""

    def __init__(self, channels: int, size: tuple[int, int], *, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(channels * size[0] * size[1], width)

    def forward(self, state: Tensor) -> Tensor:
        """(B, channels, W, H) to (B, D)."""
        return self.project(state.flatten(1))


class PartialStates(nn.Module):
    """State encoder and selector: observation to sigma(s), the input of every head."""

    def __init__(self, config: NetworkConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        width, height, _ = spec.shape
        if config.scaled_start and spec.examples is None:
            raise ValueError("scaled_start needs examples of observations, which this environment does not offer")
        examples = torch.from_numpy(spec.examples) if config.scaled_start else None
        self.encode = StateEncoder(spec.vocabulary, config.embedding, examples=examples)
        self.select: LocalFieldSelector | WholeState
        if config.spatial_abstraction:
            self.select = LocalFieldSelector(
                config.embedding,
                (width, height),
                field=config.field_size,
                width=config.partial_width,
                top=config.fields,
                linear=config.linear_scores,
            )
        else:
            self.select = WholeState(config.embedding, (width, height), width=config.partial_width)

    @torch.no_grad()
    def attend(self, observation: Array) -> Attention | None:
        """The fields of observations (B, W, H, C) that are attended to; None without spatial abstraction."""
        if not isinstance(self.select, LocalFieldSelector):
            return None
        chosen = self.select.select(self.encode(observations_tensor(observation)))
        left, upper = np.divmod(chosen.fields.cpu().numpy(), self.select.grid[1])
        size = (np.full_like(left, side) for side in self.select.kernel)
        return Attention(np.stack([left, upper, *size], axis=-1), chosen.weights.cpu().numpy())

    def forward(self, observation: Tensor) -> Tensor:
        """(B, W, H, C) integers to sigma(s), (B, D)."""
        return self.select(self.encode(observation))
