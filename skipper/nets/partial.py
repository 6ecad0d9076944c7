"""From observations to partial states: what every head of every agent looks at."""

import torch
from torch import Tensor, nn

from skipper.config import NetworkConfig
from skipper.nets.encoder import StateEncoder
from skipper.nets.selector import LocalFieldSelector, WholeState
from skipper.types import EnvironmentSpec


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

    def forward(self, observation: Tensor) -> Tensor:
        """(B, W, H, C) integers to sigma(s), (B, D)."""
        return self.select(self.encode(observation))
