"""What Skipper's updates learn from: hindsight, imagined targets, and what the frozen network expects of them."""

from typing import NamedTuple

import torch
from torch import Tensor

from skipper.agents.learning_core import LearningCore, named_rng, observations_tensor
from skipper.nets.estimators import BootstrapTargets, Hindsight, SkipperNetwork, bootstrap_targets
from skipper.nets.frozen import FrozenNetwork
from skipper.replay.store import Samples
from skipper.types import Scene

PAIRS_PER_DELUSION = 4


class UpdateBatch(NamedTuple):
    """All that an update needs beside the networks that learn."""

    batch: Hindsight  # P transitions with a target each
    real: int  # of these so many come first; the targets of the others were imagined
    bootstrap: BootstrapTargets
    samples: Samples | None  # where they were drawn by priority
    contexts: tuple[Tensor, Tensor, Tensor] | None  # for the generator: states, others of their episodes, agents' cells
    goals: tuple[Tensor, Tensor] | None  # to learn the goal from: states, and the cells in which agents were rewarded
    update: int  # how many were there before
    rate: float  # the share of the learning rate that is due


class UpdateBatches:
    """Prepares a batch_ for every update, in turn."""

    def __init__(self, core: LearningCore[SkipperNetwork], frozen: FrozenNetwork, scene: Scene) -> None:
        self.config = core.config
        self._core, self._frozen, self._scene = core, frozen, scene
        self.rng = named_rng(core.config.seed, "imagine")

    def prepare(self) -> UpdateBatch:
        """The batch_ of the next update."""
        core, update = self._core, self._core.updates
        samples = None if self.config.replay.all_pairs else core.sample()
        batch = Hindsight.of_samples(samples) if samples else Hindsight.of_pairs(core.sample_pairs())
        real = len(batch.action)
        described = update % self.config.generator.generator_every == 0
        contexts = self._contexts(batch) if described else None
        goals = self._goals(batch) if described and self.config.generator.learned_goal else None
        if self.config.learning.delusion_scale > 0:
            batch = self._with_delusions(batch)
        bootstrap = bootstrap_targets(core.target_network.estimators, batch, self._frozen.encode)
        return UpdateBatch(batch, real, bootstrap, samples, contexts, goals, update, core.rate)

    def _contexts(self, batch: Hindsight) -> tuple[Tensor, Tensor, Tensor]:
        """States, beside each another one of its episode, in whose context it is to be reconstructed, and its cell."""
        if self.config.replay.all_pairs:  # the batch is of too few episodes for a generator
            described, context = map(observations_tensor, self._core.sample_contexts())
        else:
            described, context = batch.state[batch.source], batch.state[batch.target]
        return described, context, self._cells(described)

    def _goals(self, batch: Hindsight) -> tuple[Tensor, Tensor]:
        """Targets of transitions that were rewarded, and the cells that these entered."""
        rewarded = torch.nonzero(batch.reward > 0)[:, 0]
        return batch.state[batch.target[rewarded]], self._cells(batch.state[batch.next[rewarded]])

    def _cells(self, states: Tensor) -> Tensor:
        return torch.from_numpy(self._scene.agent_cell(states.numpy()))

    def _with_delusions(self, batch: Hindsight) -> Hindsight:
        """The batch, and after it transitions that aim at imagined states, which may not exist (App., Alg. 3).

        One state is imagined for every sample, or for every episode of which there are pairs, and some of these pairs
        aim at it.
        """
        context = batch.state[batch.firsts]
        codes = self.rng.integers(2**self._core.target_network.generator.bits, size=(len(context), 1))
        logits = self._frozen.logits(context, torch.from_numpy(codes))[:, 0]  # (E, S)
        # Sampling from a softmax: the largest of logits with Gumbel noise.
        cell = (logits.numpy() + self.rng.gumbel(size=logits.shape)).argmax(-1)
        imagined = self._scene.place_agent(context.numpy(), cell[:, None])[:, 0]
        rows = torch.arange(len(batch.action))
        if self.config.replay.all_pairs:
            rows = torch.from_numpy(self.rng.permutation(len(rows))[: max(len(rows) // PAIRS_PER_DELUSION, 1)])
        return batch.aiming_also_at(observations_tensor(imagined), rows)
