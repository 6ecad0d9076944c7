"""Skipper's update: the losses of estimators and generators, and one gradient step (Sec. 3.3, Alg. 1 and 3)."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from skipper.agents.learning_core import OnlineNetwork
from skipper.agents.skipper.config import SkipperConfig, SkipperLearningConfig
from skipper.agents.skipper.hindsight import BootstrapTargets, Hindsight, UpdateBatch
from skipper.losses import (
    distance_histogram_target,
    distance_target,
    histogram_loss,
    reward_target,
    scalar_loss,
    terminal_loss,
    total_loss,
    value_target,
    weighted_mean,
)
from skipper.nets.compiled import scene_encoder
from skipper.nets.compiled.pair_losses import pair_losses, supports
from skipper.nets.estimators import EstimatorNetwork, SkipperNetwork
from skipper.nets.generator import cyclic_weight
from skipper.nets.heads import PairwiseHead, expect_pairs
from skipper.types import Array


class UpdateResult(NamedTuple):
    """What an update reports."""

    metrics: Mapping[str, float]
    losses: Array | None  # (real,) of the transitions with real targets, for their priorities; None where unknown


class Updater:
    """Updates estimators and generators. They share no weights, so their two steps are independent."""

    def __init__(self, config: SkipperConfig, online: OnlineNetwork[SkipperNetwork]) -> None:
        """Everything that an update changes is in ``online``."""
        self.config, self.online = config, online

    def update(self, batch: UpdateBatch) -> UpdateResult:
        """One update of everything."""
        estimated = self.update_estimators(batch)
        generated = self.update_generators(batch)
        self.online.update_average()
        return estimated._replace(metrics=all_metrics(estimated.metrics, generated))

    def update_estimators(self, batch: UpdateBatch) -> UpdateResult:
        """One step of the estimators and of the checkpoint policy."""
        settings, real = self.config.learning, batch.real
        losses = estimator_losses(self.online.network.estimators, batch.hindsight, batch.bootstrap, settings, real)
        # Real targets: the sum of the four losses, by importance weight (App. "Training").
        delusion = losses["distance"][real:]
        losses["distance"] = losses["distance"][:real]
        per_pair = total_loss(losses, dict.fromkeys(losses, 1.0))  # (real,)
        weight = torch.ones(real) if batch.weight is None else batch.weight
        loss = weighted_mean(per_pair, weight)
        # Imagined targets: only their distances are learned, without importance weights (Alg. 3).
        if len(delusion):
            losses["delusion"] = delusion
            loss = loss + (settings.delusion_scale * delusion).mean()
        self.online.step(loss, batch.rate)
        pairs = torch.tensor(float(len(batch.hindsight.action)))
        return UpdateResult(_means({"loss": loss, "pairs": pairs} | losses), per_pair.detach().numpy())

    def update_generators(self, batch: UpdateBatch) -> dict[str, float]:
        """One step of the generators when it is due, not weighted by priority (App. "Checkpoint Generator")."""
        losses, network, settings = {}, self.online.network, self.config.generator
        # Reconstruct the agent's cell of states in the contexts of others of their episodes.
        if batch.contexts is not None:
            found = network.generator.losses(*batch.contexts)
            scale = settings.entropy_scale * cyclic_weight(batch.update, settings.entropy_period)
            losses = {"reconstruction": found["reconstruction"].mean(), "entropy": scale * found["entropy"].mean()}
        # Predict the cells in which agents were rewarded.
        if network.goal is not None and batch.goals is not None and len(batch.goals[1]):
            losses["goal"] = network.goal.loss(*batch.goals)
        if losses:
            self.online.step(torch.stack(list(losses.values())).sum(), batch.rate)
        return _means(losses)

    def synchronise(self) -> None:
        """Updates are complete when they return: nothing to wait for."""

    def restart(self) -> None:
        """The next update starts from the weights in ``online``: nothing to send."""


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


def head_losses(
    head: PairwiseHead, sigma: Tensor, source: Tensor, target: Tensor, action: Tensor, value: Tensor
) -> Tensor:
    """(P,) losses of a head's histograms of ``action`` against scalars or histograms ``value``, (P,) or (P, K).

    Pairs are indices into ``sigma``.
    """
    if supports(head):
        return pair_losses(head, sigma, source, target, action, value)
    logits = head(sigma[source], sigma[target])  # (P, A, K)
    chosen = logits[torch.arange(len(action)), action]  # (P, K)
    return scalar_loss(chosen, value, head.support) if value.ndim == 1 else histogram_loss(chosen, value)


def all_metrics(estimated: Mapping[str, float], generated: Mapping[str, float]) -> dict[str, float]:
    """The metrics of both steps of an update."""
    return {**estimated, **generated, "loss": estimated["loss"] + sum(generated.values())}


def _means(losses: Mapping[str, Tensor]) -> dict[str, float]:
    return {name: float(loss.detach().mean()) for name, loss in losses.items()}
