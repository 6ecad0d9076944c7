"""LEAP's updates: the generator in the first stage, distances and terminal states in the second."""

from typing import Self

import torch
from torch import Tensor

from skipper.agents.hindsight import (
    HindsightBatches,
    UpdateBatch,
    Updater,
    head_losses,
    means,
)
from skipper.agents.leap.config import LeapConfig
from skipper.agents.learning_core import LearningCore, OnlineNetwork
from skipper.losses import distance_target, terminal_loss, weighted_mean
from skipper.nets.compiled import scene_encoder
from skipper.nets.estimators import LeapNetwork
from skipper.nets.frozen import FrozenNetwork
from skipper.nets.generator import cyclic_weight
from skipper.nets.heads import expect_pairs
from skipper.types import EnvironmentSpec


class LeapUpdater(Updater[LeapNetwork]):
    """Updates the distance and the terminal head."""

    config: LeapConfig

    @classmethod
    def build(cls, config: LeapConfig, spec: EnvironmentSpec) -> Self:
        """An updater with a network of its own."""
        return cls(config, OnlineNetwork(LeapNetwork(config, spec), config.learning))

    def losses(self, batch: UpdateBatch) -> dict[str, Tensor]:
        """Distances (P,) and terminal states (real,)."""
        online, hindsight, real = self.online.network.estimators, batch.hindsight, batch.real
        # Encode each state once.
        sigma = scene_encoder.encode(online.partial, hindsight.state, hindsight.episode)  # (M, D)
        # Double DQN: the online network chooses the next action, the target network evaluates it.
        a_t = expect_pairs(online.distance, sigma, hindsight.next, hindsight.target).argmin(-1)  # (P,)
        distance_t = batch.bootstrap[torch.arange(len(a_t), device=a_t.device), a_t]
        distance = distance_target(hindsight.reached, hindsight.terminated, distance_t, hindsight.steps)
        # The path that the episode took bounds it; not in the paper.
        if self.config.learning.hindsight_bound:
            distance = distance.minimum(hindsight.path_steps)
        terminal = online.terminal(sigma).index_select(0, hindsight.next[:real])  # (real, 2)
        pairs = hindsight.source, hindsight.target, hindsight.action, distance
        return {
            "terminal": terminal_loss(terminal, hindsight.terminated[:real]),
            "distance": head_losses(online.distance, sigma, *pairs),
        }

    def weighted(self, losses: Tensor, weight: Tensor) -> Tensor:
        """The mean of losses (real,), each by its own importance weight or all by the mean weight."""
        if self.config.learning.importance_weights == "mean":
            weight = weight.mean().expand_as(weight)
        return weighted_mean(losses, weight)


class LeapBatches:
    """Updates the generator in the first stage, and prepares the batches of the second."""

    def __init__(
        self, core: LearningCore[LeapNetwork], config: LeapConfig, spec: EnvironmentSpec, frozen: FrozenNetwork
    ) -> None:
        """``frozen`` is the target network."""
        self.config, self._core, self._frozen = config, core, frozen
        self.draw = HindsightBatches(core, config, spec, frozen)

    def prepare(self) -> UpdateBatch:
        """The batch of the next update of the second stage."""
        core = self._core
        hindsight, samples = self.draw.sample()
        real = len(hindsight.action)
        # Delusion suppression: the same transitions with imagined targets (Alg. 3).
        if self.config.learning.delusion_scale > 0:
            hindsight = self.draw.with_imagined_targets(hindsight)
        # What the target network expects after the transitions.
        sigma = hindsight.encode_next(self._frozen.encode)
        distance = expect_pairs(core.target_network.estimators.distance, sigma, hindsight.next, hindsight.target)
        device = self.config.device
        leaf, weight = (samples.leaf, torch.from_numpy(samples.weight).to(device)) if samples else (None, None)
        return UpdateBatch(hindsight.to(device), real, distance, leaf, weight, None, None, core.updates, core.rate)

    def update_generator(self) -> dict[str, float]:
        """One update of the generator, the first stage: states in the contexts of others of their episodes.

        Unlike Skipper's, samples are drawn and weighted by priority, unless all pairs are learned from.
        """
        core, settings = self._core, self.config.generator
        samples = None if self.config.replay.all_pairs else self.draw.sample()
        hindsight, drawn = samples if samples else (None, None)
        losses = core.network.generator.losses(*self.draw.contexts(hindsight))
        scale = settings.entropy_scale * cyclic_weight(core.updates, settings.entropy_period)
        losses["entropy"] = scale * losses["entropy"]
        per_sample = losses["reconstruction"] + losses["entropy"]  # (B,)
        weight = torch.from_numpy(drawn.weight).to(per_sample) if drawn else torch.ones_like(per_sample)
        loss = weighted_mean(per_sample, weight)
        core.online.step(loss, core.rate)
        core.online.update_average()
        self.draw.update_priorities(drawn.leaf if drawn else None, per_sample.detach().cpu().numpy())
        return means({"loss": loss} | losses)
