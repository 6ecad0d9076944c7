"""From observations to partial states: what every head of every agent looks at."""

import numpy as np
import torch
from torch import Tensor, nn

from skipper.config import NetworkConfig
from skipper.nets.encoder import StateEncoder
from skipper.nets.selector import LocalFieldSelector, WholeState
from skipper.types import Array, Attention, EnvironmentSpec


class PartialStates(nn.Module):
    """State encoder and selector, or the linear layer of the ablation in the selector's place."""

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
            )
        else:
            self.select = WholeState(config.embedding, (width, height), width=config.partial_width)

    @torch.no_grad()
    def attend(self, observation: Array) -> Attention | None:
        """What of observations (B, W, H, C) is looked at; None where that is all of them."""
        if isinstance(self.select, WholeState):
            return None
        chosen = self.select.select(self.encode(torch.from_numpy(np.ascontiguousarray(observation))))
        left, upper = np.divmod(chosen.fields.numpy(), self.select.grid[1])
        size = (np.full_like(left, side) for side in self.select.kernel)
        return Attention(np.stack([left, upper, *size], axis=-1), chosen.weights.numpy())

    def forward(self, observation: Tensor) -> Tensor:
        """(B, W, H, C) integers to sigma(s), (B, D)."""
        return self.select(self.encode(observation))
