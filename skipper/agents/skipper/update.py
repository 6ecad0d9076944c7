"""Skipper's update: its batches, and the losses of estimators and generators (Sec. 3.3, Alg. 1 and 3)."""

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from skipper.agents.hindsight import (
    Hindsight,
    HindsightBatches,
    UpdateBatch,
    Updater,
    head_losses,
    means,
)
from skipper.agents.learning_core import LearningCore, OnlineNetwork
from skipper.agents.skipper.config import SkipperConfig, SkipperLearningConfig
from skipper.losses import distance_histogram_target, distance_target, reward_target, terminal_loss, value_target
from skipper.nets.compiled import scene_encoder
from skipper.nets.estimators import EstimatorNetwork, SkipperNetwork
from skipper.nets.frozen import FrozenNetwork
from skipper.nets.generator import cyclic_weight
from skipper.nets.heads import expect_pairs, histograms_of_pairs
from skipper.runtime.jit import kernel
from skipper.types import EnvironmentSpec


class BootstrapTargets(NamedTuple):
    """Estimates of the target network for every action in the next states, (P, A) each."""

    value: Tensor
    reward: Tensor
    distance: Tensor  # (P, A, K) histograms where whole distributions are backed up

    def of_action(self, action: Tensor) -> "BootstrapTargets":
        """(P,) each, for the next actions ``action`` (P,); distances (P, K) where they are histograms."""
        pairs = torch.arange(len(action), device=action.device)
        return BootstrapTargets(*(column[pairs, action] for column in self))


class SkipperBatches:
    """Prepares the batch of every update, from stored episodes and the frozen target network."""

    def __init__(
        self, core: LearningCore[SkipperNetwork], config: SkipperConfig, spec: EnvironmentSpec, frozen: FrozenNetwork
    ) -> None:
        """``frozen`` is the target network."""
        self.config, self._core, self._frozen = config, core, frozen
        self.draw = HindsightBatches(core, config, spec, frozen)

    def prepare(self) -> UpdateBatch:
        """The batch of the next update."""
        core, update, settings = self._core, self._core.updates, self.config.learning
        # Sample hindsight transitions (Alg. 1, "time to train"; App. "HER"): by priority, or all pairs.
        hindsight, samples = self.draw.sample()
        real = len(hindsight.action)
        # States in the contexts of others of their episodes, for the generators (App. "Checkpoint Generator").
        generate = update % self.config.generator.generator_every == 0
        contexts = self.draw.contexts(hindsight) if generate else None
        goals = self._goals(hindsight) if generate and self.config.generator.learned_goal else None
        # Delusion suppression: the same transitions with imagined targets (Alg. 3).
        if settings.delusion_scale > 0:
            hindsight = self.draw.with_imagined_targets(hindsight)
        # What the target network expects after the transitions (Sec. 3.3).
        distributions = self.config.planning.distance_distributions
        frozen = core.target_network.estimators
        bootstrap = bootstrap_targets(frozen, hindsight, self._frozen.encode, distributions=distributions)
        if settings.multistep:
            hindsight, bootstrap = extend(hindsight, bootstrap, settings.task_discount)
        device = self.config.device
        leaf, weight = (samples.leaf, torch.from_numpy(samples.weight).to(device)) if samples else (None, None)
        hindsight = hindsight.to(device)
        return UpdateBatch(hindsight, real, bootstrap, leaf, weight, contexts, goals, update, core.rate)

    def _goals(self, hindsight: Hindsight) -> tuple[Tensor, Tensor]:
        """Targets of rewarded transitions, and the placements that these led to."""
        rewarded = torch.nonzero(hindsight.reward > 0)[:, 0]
        entered = hindsight.state[hindsight.next[rewarded]]
        return hindsight.state[hindsight.target[rewarded]], self.draw.placements(entered)


@torch.no_grad()
def bootstrap_targets(
    frozen: EstimatorNetwork,
    batch: Hindsight,
    encode: Callable[[Tensor], Tensor],
    *,
    distributions: bool = False,
) -> BootstrapTargets:
    """Estimates of the ``frozen`` target network; ``encode`` gives its partial states, (M, W, H, C) to (M, D).

    With ``distributions`` distances are histograms.
    """
    pairs = batch.encode_next(encode), batch.next, batch.target
    distance = histograms_of_pairs if distributions else expect_pairs
    return BootstrapTargets(
        expect_pairs(frozen.value, *pairs), expect_pairs(frozen.reward, *pairs), distance(frozen.distance, *pairs)
    )


def extend(batch: Hindsight, bootstrap: BootstrapTargets, discount: float) -> tuple[Hindsight, BootstrapTargets]:
    """Multi-step transitions: from each, go on for as long as the episode did what the target network would do.

    Watkins' Q(lambda) with lambda = 1: rewards are those that the episode collected, up to the first action that the
    target network's policy would not have taken.
    """
    greedy = bootstrap.value.argmax(-1)  # (P,) in the next states
    columns = (batch.following, batch.action, greedy, batch.reached, batch.terminated, batch.reward)
    last, steps, reward = map(torch.from_numpy, _follow(*(column.cpu().numpy() for column in columns), discount))
    extended = batch._replace(
        next=batch.next[last],
        reward=reward,
        terminated=batch.terminated[last],
        reached=batch.reached[last],
        steps=steps,
    )
    return extended, BootstrapTargets(*(column[last] for column in bootstrap))


@kernel
def _follow(following, action, greedy, reached, terminated, reward, discount):
    """The last of the transitions that each can be followed to, their number, and their discounted rewards."""
    pairs = len(following)
    last, steps, collected = np.arange(pairs), np.ones(pairs, np.float32), reward.copy()
    for first in range(pairs - 1, -1, -1):  # pairs follow those with smaller indices
        after = following[first]
        if after >= 0 and action[after] == greedy[first] and not (reached[first] or terminated[first]):
            last[first], steps[first] = last[after], 1.0 + steps[after]
            collected[first] += np.float32(discount) * collected[after]
    return last, steps, collected


class SkipperUpdater(Updater[SkipperNetwork]):
    """Updates value, reward, distance and terminal heads, and the generators."""

    config: SkipperConfig

    @classmethod
    def build(cls, config: SkipperConfig, spec: EnvironmentSpec) -> Self:
        """An updater with a network of its own."""
        return cls(config, OnlineNetwork(SkipperNetwork(config, spec), config.learning))

    def losses(self, batch: UpdateBatch) -> dict[str, Tensor]:
        """Losses of the four estimators."""
        online, settings = self.online.network.estimators, self.config.learning
        return estimator_losses(online, batch.hindsight, batch.bootstrap, settings, batch.real)

    def update_generators(self, batch: UpdateBatch) -> dict[str, float]:
        """One step of the generators when it is due, not weighted by priority (App. "Checkpoint Generator")."""
        losses, network, settings = {}, self.online.network, self.config.generator
        # Reconstruct the placements of states in the contexts of others of their episodes.
        if batch.contexts is not None:
            found = network.generator.losses(*batch.contexts)
            scale = settings.entropy_scale * cyclic_weight(batch.update, settings.entropy_period)
            losses = {"reconstruction": found["reconstruction"].mean(), "entropy": scale * found["entropy"].mean()}
        # Predict the placements in which agents were rewarded.
        if network.goal is not None and batch.goals is not None and len(batch.goals[1]):
            losses["goal"] = network.goal.loss(*batch.goals)
        if losses:
            self.online.step(torch.stack(list(losses.values())).sum(), batch.rate)
        return means(losses)


def estimator_losses(
    online: EstimatorNetwork,
    batch: Hindsight,
    bootstrap: BootstrapTargets,
    config: SkipperLearningConfig,
    real: int | None = None,
) -> dict[str, Tensor]:
    """Per-pair losses of the four estimators (Sec. 3.3, App. "Estimators").

    Distance losses are (P,), the others (real,): the targets of the other pairs are imagined, and only their distances
    are learned.
    """
    # Encode each state once.
    sigma = scene_encoder.encode(online.partial, batch.state, batch.episode)  # (M, D)
    # Double DQN: the online policy chooses the next action for all heads, the target network evaluates it.
    a_t = expect_pairs(online.value, sigma, batch.next, batch.target).argmax(-1)  # (P,)
    targets = _learning_targets(batch, bootstrap.of_action(a_t), config)
    # Whether the next states are terminal.
    terminal = online.terminal(sigma).index_select(0, batch.next[:real])  # (real, 2)
    losses = {"terminal": terminal_loss(terminal, batch.terminated[:real])}
    # Histograms of value, reward and distance of the actions taken.
    for name, value in targets.items():
        rows = slice(None) if name == "distance" else slice(real)
        columns = (column[rows] for column in (batch.source, batch.target, batch.action, value))
        losses[name] = head_losses(getattr(online, name), sigma, *columns)
    return losses


@torch.no_grad()
def _learning_targets(batch: Hindsight, after: BootstrapTargets, config: SkipperLearningConfig) -> dict[str, Tensor]:
    """(P,) targets of the intrinsic value, the cumulative reward (Eq. 4) and the distance (Sec. 3.3).

    Those of distances are histograms (P, K) where whole distributions are backed up.
    """
    steps, ends = batch.steps, (batch.reached, batch.terminated)
    distance = distance_target if after.distance.ndim == 1 else distance_histogram_target
    targets = {
        "value": value_target(*ends, after.value, config.policy_discount, steps),
        "reward": reward_target(batch.reward, *ends, after.reward, config.task_discount, steps),
        "distance": distance(*ends, after.distance, steps),
    }
    # The path that the episode took bounds them; not in the paper.
    if config.hindsight_bound:
        targets["value"] = targets["value"].maximum(config.policy_discount ** (batch.path_steps - 1.0))
        targets["reward"] = targets["reward"].maximum(batch.path_reward)
        targets["distance"] = targets["distance"].minimum(batch.path_steps)
    return targets
