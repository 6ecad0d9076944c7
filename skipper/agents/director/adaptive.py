"""Numbers that follow statistics of the training: weights of losses, and normalisers of returns and advantages."""

import torch
from torch import Tensor, nn

VELOCITY = THRESHOLD = 0.1


class AdaptiveScale(nn.Module):
    """A weight that grows by a tenth while a quantity is above its target, and shrinks while it is below.

    With ``inverse`` the other way round, for a quantity that the weight increases.
    """

    scale: Tensor

    def __init__(
        self, target: float, low: float, high: float, shape: tuple[int, ...] = (), *, inverse: bool = False
    ) -> None:
        super().__init__()
        self._target, self._low, self._high, self._inverse = target, low, high, inverse
        self.register_buffer("scale", torch.ones(shape))

    @torch.no_grad()
    def forward(self, quantity: Tensor) -> Tensor:
        """Adapt to the newest ``quantity``, and return the scale."""
        above = quantity > (1 + THRESHOLD) * self._target
        below = quantity < self._target / (1 + THRESHOLD)
        grow, shrink = (below, above) if self._inverse else (above, below)
        factor = torch.where(grow, 1 + VELOCITY, torch.where(shrink, 1 / (1 + VELOCITY), 1.0))
        self.scale.mul_(factor).clamp_(self._low, self._high)
        return self.scale.clone()


class MovingMoments(nn.Module):
    """Mean and standard deviation as moving averages, corrected for their start at 0."""

    moments: Tensor
    weight: Tensor

    def __init__(self, decay: float, least_deviation: float) -> None:
        super().__init__()
        self._decay, self._least = decay, least_deviation
        self.register_buffer("moments", torch.zeros(2))  # of the values and of their squares
        self.register_buffer("weight", torch.zeros(()))

    @torch.no_grad()
    def forward(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Include ``values``, and return mean and standard deviation."""
        self.moments.lerp_(torch.stack([values.mean(), values.square().mean()]), 1 - self._decay)
        self.weight.lerp_(torch.ones_like(self.weight), 1 - self._decay)
        mean, square = (self.moments / self.weight).unbind()
        return mean, (square - mean.square()).clamp(min=0).sqrt().clamp(min=self._least)
