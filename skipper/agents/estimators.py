"""Edge estimation and the checkpoint policy: four heads on partial states, learned from hindsight (Sec. 3.3)."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from skipper.agents.base import observations_tensor
from skipper.config import LearningConfig, NetworkConfig
from skipper.losses import distance_target, reward_target, scalar_loss, terminal_loss, value_target
from skipper.nets.heads import PairwiseHead, distance_support, unit_support
from skipper.nets.layers import mlp
from skipper.nets.partial import PartialStates
from skipper.replay.buffer import Samples
from skipper.types import EnvironmentSpec


class EstimatorNetwork(nn.Module):
    """Partial states, and what is estimated from them: value of the policy, reward and distance of pairs, the end."""

    def __init__(self, config: NetworkConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.partial = PartialStates(config, spec)

        def head(support: Tensor, worst: int) -> PairwiseHead:
            return PairwiseHead(
                config.partial_width,
                hidden=config.hidden,
                actions=spec.actions,
                support=support,
                favoured=worst if config.pessimistic_heads else None,
            )

        self.value = head(unit_support(config.bins), 0)
        self.reward = head(unit_support(config.bins), 0)
        self.distance = head(distance_support(config.bins), -1)
        self.terminal = mlp(config.partial_width, config.hidden, 2)


class Hindsight(NamedTuple):
    """A batch of transitions with targets, as tensors."""

    observation: Tensor  # (B, W, H, C)
    action: Tensor  # (B,)
    reward: Tensor  # (B,)
    next_observation: Tensor  # (B, W, H, C)
    terminated: Tensor  # (B,) bool
    target: Tensor  # (B, W, H, C)

    @classmethod
    def of(cls, samples: Samples, target: Tensor | None = None) -> "Hindsight":
        """Samples of the replay buffer, with their own targets or others in their place."""
        return cls(
            observations_tensor(samples.observation),
            torch.from_numpy(samples.action),
            torch.from_numpy(samples.reward),
            observations_tensor(samples.next_observation),
            torch.from_numpy(samples.terminated),
            observations_tensor(samples.target) if target is None else target,
        )

    @property
    def reached(self) -> Tensor:
        """(B,) whether the next observation is the target."""
        return (self.next_observation == self.target).flatten(1).all(1)


def estimator_losses(
    online: EstimatorNetwork, frozen: EstimatorNetwork, batch: Hindsight, config: LearningConfig
) -> dict[str, Tensor]:
    """Per-sample losses (B,) of all four heads; one next action, chosen by the online policy, serves them all."""
    B = len(batch.action)  # noqa: N806
    rows = torch.arange(B)
    reached = batch.reached
    source, after, target = online.partial(torch.cat([batch.observation, batch.next_observation, batch.target])).split(
        B
    )  # (B, D) each
    with torch.no_grad():
        a_t = online.value.expectation(online.value(after, target)).argmax(-1)  # (B,)
        after_frozen, target_frozen = frozen.partial(torch.cat([batch.next_observation, batch.target])).split(B)

        def next_estimate(head: PairwiseHead) -> Tensor:
            return head.expectation(head(after_frozen, target_frozen)[rows, a_t])  # (B,)

        aims = {
            "value": value_target(reached, batch.terminated, next_estimate(frozen.value), config.policy_discount),
            "reward": reward_target(
                batch.reward, reached, batch.terminated, next_estimate(frozen.reward), config.task_discount
            ),
            "distance": distance_target(reached, batch.terminated, next_estimate(frozen.distance)),
        }
    losses = {"terminal": terminal_loss(online.terminal(after), batch.terminated)}
    for name, aim in aims.items():
        head: PairwiseHead = getattr(online, name)
        losses[name] = scalar_loss(head(source, target)[rows, batch.action], aim, head.support)
    return losses
