"""The model-free baseline: a distributional, prioritized double DQN on the shared encoder (App., "Estimators")."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skipper.agents.exploration import EpsilonGreedy, explore, linear_epsilon
from skipper.agents.learning_core import LearningCore, load_module_state, module_state, named_rng
from skipper.config import NetworkConfig, RunConfig
from skipper.losses import return_target, scalar_loss, weighted_mean
from skipper.nets.ensemble import SymmetryEnsemble
from skipper.nets.heads import PairwiseHead, unit_support
from skipper.nets.layers import observations_tensor, seeded_initialisation
from skipper.nets.selector import PartialStates
from skipper.replay.prioritized import PrioritizedSampler
from skipper.types import Agent, Array, Decision, EnvironmentSpec, TimeStep, Transition


class ValueNetwork(nn.Module):
    """Encoder, selector, and a value head like Skipper's, which gets the partial state in both places."""

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
        """As ``values``, for arrays."""
        return self.values(observations_tensor(observation)).numpy()


class ModelFreeAgent:
    """Learns the task's action values and acts epsilon-greedily on them."""

    def __init__(self, config: RunConfig, spec: EnvironmentSpec) -> None:
        self.config, self.spec = config, spec
        self.core = LearningCore(config, spec, lambda: ValueNetwork(config.network, spec))
        self._sampler = PrioritizedSampler(self.core.store, config.replay, named_rng(config.seed, "store"))
        self._act_rng = named_rng(config.seed, "act")

    # Acting

    def act(self, timestep: TimeStep) -> Decision:
        """Explore with an epsilon that decreases over time."""
        epsilon = linear_epsilon(self.config.learning, self.core.steps)
        values = self.core.network.expect(timestep.observation)
        return Decision(explore(values.argmax(-1), epsilon, self.spec.actions, self._act_rng), values=values)

    def evaluator(self, rng: np.random.Generator) -> Agent:
        """The evaluated network, nearly greedy, with its own random stream."""
        return EpsilonGreedy(self.core.evaluated.expect, self.config.learning.epsilon_evaluation, rng)

    # Learning

    def observe(self, transition: Transition) -> None:
        """Store what the last decision led to."""
        self.core.observe(transition)

    def ready(self) -> bool:
        """Whether an episode has ended."""
        return self._sampler.ready()

    def learn(self) -> dict[str, float]:
        """One update on a batch of prioritized transitions (App., "Training")."""
        core, online, frozen = self.core, self.core.network, self.core.target_network
        # Sample transitions by priority.
        batch = core.sample(self._sampler)
        action = torch.from_numpy(batch.action)
        next_observation = observations_tensor(batch.next_observation)
        # Double DQN: the online network selects the next action, the target network evaluates it.
        with torch.no_grad():
            a_t = online.values(next_observation).argmax(-1)  # (B,)
            value_t = frozen.values(next_observation).gather(-1, a_t[:, None])[:, 0]
        reward, terminated = torch.from_numpy(batch.reward), torch.from_numpy(batch.terminated)
        target = return_target(reward, terminated, value_t, self.config.learning.task_discount)
        # Distributional loss of the actions taken, and one gradient step.
        logits = online(observations_tensor(batch.observation))  # (B, A, K)
        taken = logits[torch.arange(len(action)), action]
        losses = scalar_loss(taken, target, online.head.support)  # (B,)
        loss = core.online.step(weighted_mean(losses, torch.from_numpy(batch.weight)), core.rate)
        core.online.update_average()
        core.updates += 1
        # The losses are the new priorities.
        self._sampler.update_priorities(batch.leaf, losses.detach().numpy())
        return {"loss": loss, "value": float(target.mean())}

    # Saving

    def weights(self) -> dict[str, Array]:
        """The network that is evaluated."""
        return module_state(self.core.evaluated)

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides the future."""
        return {
            "core": self.core.state_dict(),
            "sampler": self._sampler.state_dict(),
            "act_rng": self._act_rng.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where the state was taken."""
        self.core.load_state_dict(state["core"])
        self._sampler.load_state_dict(state["sampler"])
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

    With ``explain``, decisions also hold the attention of the selector; values are means over an ``ensemble`` of
    symmetric images.
    """
    with seeded_initialisation(0):  # overwritten below
        network = ValueNetwork(config.network, spec)
    load_module_state(network, weights)
    attend = network.partial.attend if explain else None
    images = SymmetryEnsemble(spec.symmetries, ensemble)

    def expect(observation: Array) -> Array:
        found = np.split(network.expect(images.images(observation)), ensemble)
        mean: Array = np.mean([images.renamed(each, image) for image, each in enumerate(found)], axis=0)
        return mean

    return EpsilonGreedy(expect, config.learning.epsilon_evaluation, rng, attend)
