"""Imagined trajectories as worker and manager see them, and their returns: pure functions, time first.

H imagined steps give H + 1 states. Rewards have H entries; entry t - 1 belongs to the arrival in state t.
"""

import torch
from torch import Tensor

from skipper.agents.director.config import ManagerReward


def max_cosine(goal: Tensor, state: Tensor) -> Tensor:
    """(...,) cosine of goals and states (..., D), times the ratio of the shorter to the longer of them."""
    norms = [vector.norm(dim=-1, keepdim=True) + 1e-12 for vector in (goal, state)]
    longer = torch.maximum(*norms)
    return ((goal / longer) * (state / longer)).sum(-1)


def split(states: Tensor, duration: int) -> Tensor:
    """(H + 1, B, ...) to the pieces between choices of the manager, (K + 1, N * B, ...), first pieces first.

    A piece ends with the state with which the next one begins.
    """
    pieces = [states[n : n + duration + 1] for n in range(0, len(states) - 1, duration)]
    return torch.cat(pieces, 1)


def split_rewards(rewards: Tensor, duration: int) -> Tensor:
    """(H, B) to the rewards of the pieces, (K, N * B)."""
    return torch.cat(list(rewards.split(duration)), 1)


def hold_first(goals: Tensor) -> Tensor:
    """Goals of pieces (K + 1, B, D), whose last is already the next one, with the one that was pursued instead."""
    return torch.cat([goals[:-1], goals[:1]])


def weights(continuation: Tensor, discount: float) -> Tensor:
    """How likely and how much states (T, B) count: products of continuations and discounts up to each."""
    return (discount * continuation).cumprod(0) / discount


def abstract_rewards(rewards: Tensor, continuation: Tensor, duration: int, combine: ManagerReward) -> Tensor:
    """The manager's rewards (N, B) from those of all steps (H, B) and continuations (H + 1, B)."""
    alive = continuation[:-1].unflatten(0, (-1, duration)).cumprod(1)  # (N, K, B)
    weighted = alive * rewards.unflatten(0, (-1, duration))
    return weighted.mean(1) if combine == "mean" else weighted.sum(1)


def abstract_continuation(continuation: Tensor, duration: int) -> Tensor:
    """Continuations (H + 1, B) between choices of the manager, (N + 1, B)."""
    between = continuation[1:].unflatten(0, (-1, duration)).prod(1)
    return torch.cat([continuation[:1], between])


def lambda_returns(rewards: Tensor, values: Tensor, continuation: Tensor, discount: float, mix: float) -> Tensor:
    """(L, B) returns from rewards (L, B), values and continuations (L + 1, B); ``mix`` is lambda (Sutton 1988)."""
    assert len(values) == len(continuation) == len(rewards) + 1, (values.shape, continuation.shape, rewards.shape)
    discounts = discount * continuation[1:]
    one_step, kept = rewards + (1 - mix) * discounts * values[1:], mix * discounts
    returns, following = [], values[-1]
    for t in reversed(range(len(rewards))):
        following = torch.addcmul(one_step[t], kept[t], following)
        returns.append(following)
    return torch.stack(returns[::-1])
