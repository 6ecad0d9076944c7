"""The model-free baseline: a distributional, prioritized double DQN on the shared encoder (App., "Estimators")."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skipper.agents.exploration import EpsilonGreedy, RevisitPenalty, explore, linear_epsilon
from skipper.agents.learning_core import LearningCore, load_module_state, module_state, named_rng
from skipper.agents.modelfree.config import ModelFreeConfig
from skipper.config import NetworkConfig
from skipper.losses import return_target, scalar_loss, weighted_mean
from skipper.nets.compiled import scene_encoder
from skipper.nets.ensemble import SymmetryEnsemble
from skipper.nets.frozen_encoder import FrozenEncoder
from skipper.nets.heads import PairwiseHead, unit_support
from skipper.nets.layers import observations_tensor, seeded_initialisation
from skipper.nets.selector import PartialStates
from skipper.replay.prioritized import PrioritizedSampler
from skipper.replay.windows import WindowSampler
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
        return self.logits(self.partial(observation))

    def logits(self, partial: Tensor) -> Tensor:
        """(B, D) partial states to logits (B, A, K)."""
        return self.head(partial, partial)

    def values(self, observation: Tensor) -> Tensor:
        """(B, A) expected returns."""
        return self.head.expectation(self(observation))

    @torch.no_grad()
    def expect(self, observation: Array) -> Array:
        """As ``values``, for arrays."""
        return self.values(observations_tensor(observation)).cpu().numpy()


class FrozenValues:
    """The action values of a network between two changes of its weights, with cached partial states."""

    def __init__(self, network: ValueNetwork, config: NetworkConfig) -> None:
        self._network = network
        self._encoder = FrozenEncoder(network.partial, config.partial_width)

    @torch.no_grad()
    def values(self, observation: Tensor) -> Tensor:
        """(B, W, H, C) to expected returns (B, A)."""
        network = self._network
        return network.head.expectation(network.logits(self._encoder.encode(observation)))

    def expect(self, observation: Array) -> Array:
        """As ``values``, for arrays."""
        return self.values(observations_tensor(observation)).cpu().numpy()

    def state_dict(self) -> dict[str, Any]:
        """The cached partial states."""
        return self._encoder.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore them; the network must have its weights already."""
        self._encoder.load_state_dict(state)


class ModelFreeAgent:
    """Learns the task's action values and acts epsilon-greedily on them."""

    def __init__(self, config: ModelFreeConfig, spec: EnvironmentSpec) -> None:
        self.config, self.spec = config, spec
        self.core = LearningCore(config, spec, lambda: ValueNetwork(config.network, spec))
        self._frozen = FrozenValues(self.core.target_network, config.network)
        self._sampler: PrioritizedSampler | WindowSampler
        if config.replay.window_episodes:
            self._sampler = WindowSampler(self.core.store, config.replay, config.learning.task_discount)
        else:
            self._sampler = PrioritizedSampler(self.core.store, config.replay, named_rng(config.seed, "store"))
        self._act_rng = named_rng(config.seed, "act")

    # Acting

    def act(self, timestep: TimeStep) -> Decision:
        """Explore with an epsilon that decreases over time."""
        settings = self.config.learning
        network = self._frozen if settings.act_with_target_network else self.core.network
        values = network.expect(timestep.observation)
        epsilon = linear_epsilon(settings, self.core.steps)
        return Decision(explore(values.argmax(-1), epsilon, self.spec.actions, self._act_rng), values=values)

    def evaluator(self, rng: np.random.Generator) -> Agent:
        """The evaluated network, nearly greedy, with its own random stream."""
        return _evaluated(self.core.evaluated, self.config, self.spec, rng)

    # Learning

    def observe(self, transition: Transition) -> None:
        """Store what the last decision led to."""
        self.core.observe(transition)

    def ready(self) -> bool:
        """Whether an episode has ended."""
        return self._sampler.ready()

    def learn(self) -> dict[str, float]:
        """One update, on single transitions by priority (App., "Training") or on windows of transitions."""
        if isinstance(self._sampler, WindowSampler):
            metrics = self._learn_windows(self._sampler)
        else:
            metrics = self._learn_samples(self._sampler)
        self.core.online.update_average()
        self.core.updates += 1
        return metrics

    def _learn_samples(self, sampler: PrioritizedSampler) -> dict[str, float]:
        core, online = self.core, self.core.network
        # Sample transitions by priority.
        batch = core.sample(sampler)
        columns = (batch.action, batch.reward, batch.terminated, batch.weight)
        action, reward, terminated, weight = (torch.from_numpy(column).to(self.config.device) for column in columns)
        next_observation = observations_tensor(batch.next_observation)
        # Double DQN: the online network selects the next action, the target network evaluates it.
        with torch.no_grad():
            a_t = online.values(next_observation).argmax(-1)  # (B,)
            value_t = core.target_network.values(next_observation).gather(-1, a_t[:, None])[:, 0]
        target = return_target(reward, terminated, value_t, self.config.learning.task_discount)
        # Distributional loss of the actions taken, and one gradient step.
        logits = online(observations_tensor(batch.observation))  # (B, A, K)
        taken = logits[torch.arange(len(action), device=action.device), action]
        losses = scalar_loss(taken, target, online.head.support)  # (B,)
        loss = core.online.step(weighted_mean(losses, weight), core.rate)
        # The losses are the new priorities.
        sampler.update_priorities(batch.leaf, losses.detach().cpu().numpy())
        return {"loss": loss, "value": float(target.mean())}

    def _learn_windows(self, sampler: WindowSampler) -> dict[str, float]:
        core, online, settings = self.core, self.core.network, self.config.learning
        # Sample windows of transitions, in symmetric images of their tasks.
        batch = sampler.sample(core.sample_rng)
        batch = core.images.of_windows(batch, core.target_updates) if core.images else batch
        observation = observations_tensor(batch.observation)
        columns = (batch.source, batch.next, batch.action, batch.reward, batch.terminated, batch.collected)
        moved = [torch.from_numpy(column).to(self.config.device) for column in columns]
        source, after, action, reward, terminated, collected = moved
        # Encode each state once.
        scene = torch.from_numpy(np.unique(batch.task, return_inverse=True)[1])  # (M,)
        logits = online.logits(scene_encoder.encode(online.partial, observation, scene))  # (M, A, K)
        # Double DQN: the online network selects the next action, the target network evaluates it.
        with torch.no_grad():
            a_t = online.head.expectation(logits).argmax(-1)  # (M,)
            value_t = self._frozen.values(observation).gather(-1, a_t[:, None])[:, 0]  # (M,)
        target = return_target(reward, terminated, value_t[after], settings.task_discount)  # (P,)
        # What the episode collected bounds them; not in the paper.
        if settings.return_bound:
            target = target.maximum(collected)
        # Distributional loss of the actions taken, and one gradient step.
        losses = scalar_loss(logits[source, action], target, online.head.support)  # (P,)
        return {"loss": core.online.step(losses.mean(), core.rate), "value": float(target.mean())}

    # Saving

    def weights(self) -> dict[str, Array]:
        """The network that is evaluated."""
        return module_state(self.core.evaluated)

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides the future."""
        return {
            "core": self.core.state_dict(),
            "sampler": self._sampler.state_dict(),
            "frozen": self._frozen.state_dict(),
            "act_rng": self._act_rng.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where the state was taken."""
        self.core.load_state_dict(state["core"])
        self._sampler.load_state_dict(state["sampler"])
        self._frozen.load_state_dict(state["frozen"])
        self._act_rng.bit_generator.state = state["act_rng"]


def play_modelfree(
    config: ModelFreeConfig,
    spec: EnvironmentSpec,
    weights: dict[str, Array],
    rng: np.random.Generator,
    *,
    explain: bool = False,
) -> Agent:
    """An agent that acts with saved weights and holds nothing that only training needs.

    With ``explain``, decisions also hold the attention of the selector.
    """
    with seeded_initialisation(0):  # overwritten below
        network = ValueNetwork(config.network, spec)
    load_module_state(network, weights)
    return _evaluated(network, config, spec, rng, explain=explain)


def _evaluated(
    network: ValueNetwork,
    config: ModelFreeConfig,
    spec: EnvironmentSpec,
    rng: np.random.Generator,
    *,
    explain: bool = False,
) -> EpsilonGreedy:
    """A network as it is evaluated: nearly greedy, with the configured aids."""
    aids = config.decision
    images = SymmetryEnsemble(spec.symmetries, aids.ensemble)

    def expect(observation: Array) -> Array:
        found = np.split(network.expect(images.images(observation)), images.size)
        mean: Array = np.mean([images.renamed(each, image) for image, each in enumerate(found)], axis=0)
        return mean

    return EpsilonGreedy(
        expect,
        config.learning.epsilon_evaluation,
        rng,
        revisits=RevisitPenalty(aids.revisit_penalty, spec) if aids.revisit_penalty else None,
        attend=network.partial.attend if explain else None,
    )
