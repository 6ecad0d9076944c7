"""The model-free baseline: a distributional, prioritized double DQN on the shared encoder (App., "Estimators")."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skipper.agents.learning_core import (
    EpsilonGreedy,
    LearningCore,
    explore,
    linear_epsilon,
    load_module_state,
    module_state,
    named_rng,
    observations_tensor,
)
from skipper.config import NetworkConfig, RunConfig
from skipper.losses import return_target, scalar_loss, weighted_mean
from skipper.nets.ensemble import SymmetryEnsemble
from skipper.nets.heads import PairwiseHead, unit_support
from skipper.nets.layers import seeded_initialisation
from skipper.nets.partial_states import PartialStates
from skipper.types import Agent, Array, Decision, EnvironmentSpec, TimeStep, Transition


class ValueNetwork(nn.Module):
    """Encoder, selector, and one value head that is given the partial state twice, to match Skipper's heads."""

    def __init__(self, config: NetworkConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.partial = PartialStates(config, spec)
        self.head = PairwiseHead(
            config.partial_width,
            hidden=config.hidden,
            actions=spec.actions,
            support=unit_support(config.bins),
            favoured=0 if config.pessimistic_heads else None,
            scaled=config.scaled_start,
        )

    def forward(self, observation: Tensor) -> Tensor:
        """(B, W, H, C) integers to logits (B, A, K)."""
        partial = self.partial(observation)
        return self.head(partial, partial)

    def values(self, observation: Tensor) -> Tensor:
        """(B, A) expected returns."""
        return self.head.expectation(self(observation))

    @torch.no_grad()
    def expect(self, observation: Array) -> Array:
        """As ``values``, of arrays."""
        return self.values(observations_tensor(observation)).numpy()


class ModelFreeAgent:
    """Learns the task's action values and acts greedily on them."""

    def __init__(self, config: RunConfig, spec: EnvironmentSpec) -> None:
        self.config, self.spec = config, spec
        build = lambda: ValueNetwork(config.network, spec)  # noqa: E731
        self.core = LearningCore(config, spec, build, config.replay)
        self._act_rng = named_rng(config.seed, "act")

    # Acting

    def act(self, timestep: TimeStep) -> Decision:
        """Explore with an epsilon that falls over time."""
        epsilon = linear_epsilon(self.config.learning, self.core.steps)
        values = self.core.network.expect(timestep.observation)
        return Decision(explore(values.argmax(-1), epsilon, self.spec.actions, self._act_rng), values=values)

    def evaluator(self, rng: np.random.Generator) -> Agent:
        """The same network, nearly greedy, with its own random stream."""
        return EpsilonGreedy(self.core.evaluated.expect, self.config.learning.epsilon_evaluation, rng)

    # Learning

    def observe(self, transition: Transition) -> None:
        """Remember what the last decision led to."""
        self.core.observe(transition)

    def ready(self) -> bool:
        """Whether an episode has ended."""
        return len(self.core.experience.replay) > 0

    def learn(self) -> dict[str, float]:
        """One update on a batch of prioritized transitions."""
        online, frozen, batch = self.core.network, self.core.target_network, self.core.sample()
        action = torch.from_numpy(batch.action)
        next_observation = observations_tensor(batch.next_observation)
        with torch.no_grad():
            # Double DQN: the online network chooses the next action, the target network says what it is worth.
            a_t = online.values(next_observation).argmax(-1)  # (B,)
            value_t = frozen.values(next_observation).gather(-1, a_t[:, None])[:, 0]
        target = return_target(
            torch.from_numpy(batch.reward),
            torch.from_numpy(batch.terminated),
            value_t,
            self.config.learning.task_discount,
        )
        logits = online(observations_tensor(batch.observation))  # (B, A, K)
        taken = logits[torch.arange(len(action)), action]
        losses = scalar_loss(taken, target, online.head.support)  # (B,)
        loss = self.core.online.update(weighted_mean(losses, torch.from_numpy(batch.weight)), self.core.rate)
        self.core.updates += 1
        self.core.prioritise(batch, losses.detach().numpy())
        return {"loss": loss, "value": float(target.mean())}

    # Saving

    def weights(self) -> dict[str, Array]:
        """The network that is evaluated."""
        return module_state(self.core.evaluated)

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides the future."""
        return {"core": self.core.state_dict(), "act_rng": self._act_rng.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where the state was taken."""
        self.core.load_state_dict(state["core"])
        self._act_rng.bit_generator.state = state["act_rng"]


def play_modelfree(
    config: RunConfig,
    spec: EnvironmentSpec,
    weights: dict[str, Array],
    rng: np.random.Generator,
    *,
    explain: bool = False,
    ensemble: int = 1,
) -> Agent:
    """An agent that acts with saved weights and holds nothing that only training needs.

    Asked to ``explain``, it also says what it looks at. So many ``ensemble`` symmetric images count.
    """
    with seeded_initialisation(0):  # whatever they are, they are overwritten
        network = ValueNetwork(config.network, spec)
    load_module_state(network, weights)
    attend = network.partial.attend if explain else None
    symmetric = SymmetryEnsemble(spec.symmetries, ensemble)

    def expect(observation: Array) -> Array:
        found = np.split(network.expect(symmetric.images(observation)), ensemble)
        mean: Array = np.mean([symmetric.renamed(each, image) for image, each in enumerate(found)], axis=0)
        return mean

    return EpsilonGreedy(expect, config.learning.epsilon_evaluation, rng, attend)
