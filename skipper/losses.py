"""Targets and losses: pure functions, one Bellman equation each (Sec. 3.3 and App. "Estimators").

``_t`` marks estimates in the next state. All scalars are (B,). ``reached``: the next state is the target;
``terminal``: the next state ends the episode.
"""

import torch
from torch import Tensor
from torch.nn import functional


def two_hot(values: Tensor, support: Tensor) -> Tensor:
    """(...) scalars to (..., K) histograms with these means, by interpolation between the two nearest bins.

    Values outside the support, infinity included, go to its first or last bin.
    """
    values = values.clamp(support[0], support[-1])
    right = torch.searchsorted(support, values.contiguous()).clamp(1, len(support) - 1)
    left = right - 1
    share = (values - support[left]) / (support[right] - support[left])
    histogram = torch.zeros(*values.shape, len(support), dtype=support.dtype, device=support.device)
    histogram.scatter_(-1, left[..., None], (1.0 - share)[..., None])
    return histogram.scatter_(-1, right[..., None], share[..., None])


def histogram_loss(logits: Tensor, target: Tensor) -> Tensor:
    """(B, K) logits against (B, K) target histograms: KL(target || prediction), (B,)."""
    assert logits.shape == target.shape, (logits.shape, target.shape)
    return (torch.xlogy(target, target) - target * logits.log_softmax(-1)).sum(-1)


def scalar_loss(logits: Tensor, value: Tensor, support: Tensor) -> Tensor:
    """(B, K) logits against (B,) scalar targets."""
    assert logits.shape == (*value.shape, len(support)), (logits.shape, value.shape)
    return histogram_loss(logits, two_hot(value, support))


def value_target(reached: Tensor, terminal: Tensor, value_t: Tensor, discount: float, steps: Tensor) -> Tensor:
    """Intrinsic value of the checkpoint policy: a reward of 1 for reaching the target (Sec. 3.3)."""
    assert reached.shape == terminal.shape == value_t.shape == steps.shape
    later = torch.where(terminal, 0.0, discount * value_t)
    return discount ** (steps - 1.0) * torch.where(reached, 1.0, later)


def reward_target(
    reward: Tensor, reached: Tensor, terminal: Tensor, return_t: Tensor, discount: float, steps: Tensor
) -> Tensor:
    """Cumulative task reward up to and including the step into the target (Eq. 4)."""
    assert reward.shape == reached.shape == terminal.shape == return_t.shape == steps.shape
    return reward + torch.where(reached | terminal, 0.0, discount**steps * return_t)


def distance_target(reached: Tensor, terminal: Tensor, distance_t: Tensor, steps: Tensor) -> Tensor:
    """Steps to the target, infinite where the episode ends elsewhere (Sec. 3.3, "Cumulative Distances")."""
    assert reached.shape == terminal.shape == distance_t.shape == steps.shape
    return torch.where(reached, steps, torch.where(terminal, torch.inf, steps + distance_t))


def distance_histogram_target(reached: Tensor, terminal: Tensor, histogram_t: Tensor, steps: Tensor) -> Tensor:
    """(B, K) histograms of the steps to the target, from those in the next state, (B, K).

    Bins are whole numbers of steps from 1; the last one takes all that is longer, and where the episode ends elsewhere.
    """
    count, bins = histogram_t.shape
    assert reached.shape == terminal.shape == steps.shape == (count,)
    later = torch.where((reached | terminal)[:, None], 0.0, histogram_t)
    # Where the bins of the next state go.
    after = (torch.arange(bins, device=steps.device) + steps[:, None].long()).clamp(max=bins - 1)
    target = torch.zeros_like(histogram_t).scatter_add_(1, after, later)
    there = torch.where(reached, steps.long() - 1, bins - 1).clamp(max=bins - 1)
    return target.scatter_add_(1, there[:, None], (reached | terminal).to(target.dtype)[:, None])


def return_target(reward: Tensor, terminal: Tensor, value_t: Tensor, discount: float) -> Tensor:
    """One-step return of the model-free baseline."""
    assert reward.shape == terminal.shape == value_t.shape
    return reward + torch.where(terminal, 0.0, discount * value_t)


def terminal_loss(logits: Tensor, terminal: Tensor) -> Tensor:
    """(B, 2) logits against (B,) bool: cross-entropy (B,) (App. "Estimators")."""
    assert logits.shape == (*terminal.shape, 2), (logits.shape, terminal.shape)
    return functional.cross_entropy(logits, terminal.long(), reduction="none")


def total_loss(losses: dict[str, Tensor], scales: dict[str, float]) -> Tensor:
    """Sum (B,) of named losses (B,) times their scales."""
    assert losses.keys() == scales.keys(), (sorted(losses), sorted(scales))
    shapes = {tuple(loss.shape) for loss in losses.values()}
    assert len(shapes) == 1, {name: tuple(loss.shape) for name, loss in losses.items()}
    return torch.stack([scales[name] * loss for name, loss in losses.items()]).sum(0)


def weighted_mean(losses: Tensor, weights: Tensor) -> Tensor:
    """Mean of losses (B,) weighted by importance weights (B,)."""
    assert losses.ndim == 1, losses.shape
    assert losses.shape == weights.shape, (losses.shape, weights.shape)
    return (losses * weights).mean()
