"""The goal autoencoder: deterministic states as a few categorical codes, and codes back to states, which are goals."""

from math import log

import torch
from torch import Tensor, nn

from skipper.agents.director.adaptive import AdaptiveScale
from skipper.agents.director.config import GoalConfig
from skipper.agents.director.layers import (
    few_class_log_softmax,
    few_class_softmax,
    mlp,
    sample_one_hot,
    straight_through,
)

KL_SCALES = (1e-5, 1.0)


def kl_from_uniform(logits: Tensor) -> Tensor:
    """(...,) divergence of codes (..., S, C) from uniform ones, summed over the codes."""
    log_p = few_class_log_softmax(logits)
    return (log_p.exp() * (log_p + log(logits.shape[-1]))).sum((-2, -1))


class GoalAutoencoder(nn.Module):
    """Learns which codes the manager can choose, and what goals they mean."""

    def __init__(self, config: GoalConfig, width: int) -> None:
        super().__init__()
        self.shape = (config.codes, config.code_classes)
        codes = config.codes * config.code_classes
        self.encoder = mlp(width, config.goal_layers, config.goal_units, codes)
        self.decoder = mlp(codes, config.goal_layers, config.goal_units, width)
        self.kl_scale = AdaptiveScale(config.goal_kl_target, *KL_SCALES)

    def logits(self, deter: Tensor) -> Tensor:
        """Deterministic states (..., D) to the logits of their codes (..., S, C)."""
        return self.encoder(deter).unflatten(-1, self.shape)

    def goal(self, codes: Tensor) -> Tensor:
        """Codes (..., S, C), one-hot, to goals (..., D)."""
        return self.decoder(codes.flatten(-2))

    def forward(self, deter: Tensor, uniform: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss on states (B, D), with random numbers (B, S); and metrics."""
        logits = self.logits(deter)
        codes = straight_through(logits, uniform)
        error = (self.goal(codes) - deter).square().sum(-1).mean()
        kl = kl_from_uniform(logits).mean()
        loss = error + self.kl_scale(kl.detach()) * kl
        return loss, {"goal_error": error.detach(), "goal_kl": kl.detach()}

    @torch.no_grad()
    def novelty(self, deter: Tensor, uniform: Tensor) -> Tensor:
        """(...,) mean squared errors of states (..., D): what is not yet known cannot be reconstructed."""
        codes = sample_one_hot(few_class_softmax(self.logits(deter)), uniform)
        return (self.goal(codes) - deter).square().mean(-1)
