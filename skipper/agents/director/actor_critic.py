"""The actor-critic that manager and worker both are: one critic per reward, and REINFORCE with adaptive entropy."""

from collections.abc import Callable
from math import log
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from skipper.agents.director.adaptive import AdaptiveScale, MovingMoments
from skipper.agents.director.config import BehaviourConfig
from skipper.agents.director.layers import few_class_softmax, mlp, mode_one_hot, sample_one_hot, symexp, symlog
from skipper.agents.director.trajectories import lambda_returns

ENTROPY_SCALES = (1e-5, 1e2)
RETURN_DECAY, LEAST_RETURN_DEVIATION = 0.999, 0.01
ADVANTAGE_DECAY, LEAST_ADVANTAGE_DEVIATION = 0.99, 1e-8

Step = Callable[[nn.Module, Tensor], None]  # one gradient step on the loss of a network


class Trajectory(NamedTuple):
    """L imagined steps of B trajectories, for one level of the hierarchy."""

    inputs: Tensor  # (L + 1, B, D) of actor and critics
    action: Tensor  # (L + 1, B, n, C) one-hot
    rewards: dict[str, Tensor]  # (L, B) by name
    continuation: Tensor  # (L + 1, B)
    weight: Tensor  # (L + 1, B)


class Actor(nn.Module):
    """A policy over n categorical variables of C classes each, mixed with a uniform one."""

    def __init__(self, inputs: int, shape: tuple[int, int], config: BehaviourConfig) -> None:
        super().__init__()
        self.shape, self._mix = shape, config.uniform_mix
        self.network = mlp(inputs, config.policy_layers, config.policy_units, shape[0] * shape[1])

    def forward(self, inputs: Tensor) -> Tensor:
        """(..., D) to probabilities (..., n, C)."""
        probabilities = few_class_softmax(self.network(inputs).unflatten(-1, self.shape))
        return (1 - self._mix) * probabilities + self._mix / self.shape[1]

    def sample(self, inputs: Tensor, uniform: Tensor) -> Tensor:
        """(..., n, C) one-hot samples, by random numbers (..., n)."""
        return sample_one_hot(self(inputs), uniform)

    def mode(self, inputs: Tensor) -> Tensor:
        """(..., n, C) one-hot of the most likely classes."""
        return mode_one_hot(self(inputs))


def relative_entropy(probabilities: Tensor) -> Tensor:
    """(..., n) entropies of probabilities (..., n, C), as a share of the largest one."""
    return -(probabilities * probabilities.log()).sum(-1) / log(probabilities.shape[-1])


class Critic(nn.Module):
    """The value of one reward, and its slow copy, which bootstraps and serves as baseline."""

    def __init__(self, inputs: int, config: BehaviourConfig) -> None:
        super().__init__()
        self._config = config
        self.network = mlp(inputs, config.policy_layers, config.policy_units, 1)
        self.slow = mlp(inputs, config.policy_layers, config.policy_units, 1).requires_grad_(False)
        self.slow.load_state_dict(self.network.state_dict())
        self.deviation = MovingMoments(RETURN_DECAY, LEAST_RETURN_DEVIATION)

    @torch.no_grad()
    def returns(self, trajectory: Trajectory, reward: str) -> tuple[Tensor, Tensor]:
        """Lambda-returns (L, B), and the slow critic's values (L, B) of the same states."""
        config, values = self._config, symexp(self.slow(trajectory.inputs)[..., 0])
        rewards, continuation = trajectory.rewards[reward], trajectory.continuation
        if config.endless_intrinsic and reward != "extrinsic":
            continuation = torch.ones_like(continuation)
        found = lambda_returns(rewards, values, continuation, config.behaviour_discount, config.return_lambda)
        return found, values[:-1]

    def loss(self, trajectory: Trajectory, returns: Tensor) -> Tensor:
        """Squared errors of the compressed returns, weighted."""
        error = self.network(trajectory.inputs[:-1])[..., 0] - symlog(returns)
        return (trajectory.weight[:-1] * error.square()).mean()

    def copy_when_due(self, update: int) -> bool:
        """Copy the critic to the slow one after the first update, number 0, and every so many; True where it was."""
        if update % self._config.slow_critic_every:
            return False
        self.slow.load_state_dict(self.network.state_dict())
        return True


class ActorCritic(nn.Module):
    """What trains the actor of one level of the hierarchy, with weights for its rewards by name."""

    def __init__(self, inputs: int, shape: tuple[int, int], rewards: dict[str, float], config: BehaviourConfig) -> None:
        super().__init__()
        self._weights = {name: weight for name, weight in rewards.items() if weight}
        self.critics = nn.ModuleDict({name: Critic(inputs, config) for name in self._weights})
        self.advantage = MovingMoments(ADVANTAGE_DECAY, LEAST_ADVANTAGE_DEVIATION)
        self.entropy_scale = AdaptiveScale(config.entropy_target, *ENTROPY_SCALES, (shape[0],), inverse=True)

    def named_critics(self) -> list[tuple[str, Critic]]:
        """The critics with the names of their rewards."""
        return [(name, cast(Critic, critic)) for name, critic in self.critics.items()]

    def update(self, actor: Actor, trajectory: Trajectory, update: int, step: Step) -> dict[str, Tensor]:
        """The ``update``-th update, from 0, of all critics and then of the actor; ``step`` makes the gradient steps."""
        metrics = {}
        # Critics learn lambda-returns.
        advantage = torch.zeros_like(trajectory.weight[:-1])
        for name, critic in self.named_critics():
            returns, baseline = critic.returns(trajectory, name)
            step(critic.network, critic.loss(trajectory, returns))
            if critic.copy_when_due(update):
                returns, baseline = critic.returns(trajectory, name)
            # Returns and baselines in units of the returns' deviation.
            _, deviation = critic.deviation(returns)
            advantage += self._weights[name] * (returns - baseline) / deviation
            metrics[f"return_{name}"] = returns.mean()
        # The actor: normalised advantages, and an entropy bonus that adapts.
        mean, deviation = self.advantage(advantage)
        probabilities = actor(trajectory.inputs[:-1])
        entropy = relative_entropy(probabilities)  # (L, B, n)
        scale = self.entropy_scale(entropy.detach().mean((0, 1)))
        chosen = (probabilities * trajectory.action[:-1]).sum(-1).log().sum(-1)  # (L, B)
        bonus = (scale * entropy).sum(-1)
        step(actor, -(trajectory.weight[:-1] * (chosen * (advantage - mean) / deviation + bonus)).mean())
        return metrics | {"entropy": entropy.detach().mean()}
