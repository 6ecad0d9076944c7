"""What Skipper's updates learn from: hindsight, imagined targets, and what the frozen network expects of them.

But for priorities, a lesson needs nothing that updates change: without them, the next one can be prepared in a second
thread while the networks learn from this one.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import torch
from torch import Tensor

from skipper.agents.base import LearningCore, named_rng, observations_tensor
from skipper.agents.checkpoints import SkipperNetwork
from skipper.agents.estimators import Hindsight, Outlook, PartialTable, frozen_outlook
from skipper.replay.buffer import Samples
from skipper.types import Scene

PAIRS_PER_DELUSION = 4


class Lesson(NamedTuple):
    """All that an update needs beside the networks that learn."""

    batch: Hindsight  # P transitions with a target each
    real: int  # of these so many come first; the targets of the others were imagined
    outlook: Outlook
    samples: Samples | None  # where they were drawn by priority
    contexts: tuple[Tensor, Tensor] | None  # states to describe and others of their episodes, for the generator


class Lessons:
    """Prepares a lesson for every update, in turn."""

    def __init__(self, core: LearningCore[SkipperNetwork], remembered: PartialTable, scene: Scene) -> None:
        self.config = core.config
        self._core, self._remembered, self._scene = core, remembered, scene
        self.rng = named_rng(core.config.seed, "imagine")
        self._thread = ThreadPoolExecutor(1) if core.config.learning.prepare_ahead else None
        self._ahead: Future[Lesson] | None = None

    def next(self, more: bool) -> Lesson:
        """The lesson of the next update; ``more`` says that another one is wanted before anything else happens."""
        update = self._core.updates
        lesson = self._ahead.result() if self._ahead else self._prepare(update)
        self._ahead = self._thread.submit(self._prepare, update + 1) if more and self._thread else None
        return lesson

    def check_idle(self) -> None:
        """Nothing may change while a lesson is being prepared."""
        if self._ahead is not None:
            raise RuntimeError("another update was announced, so it must come first")

    def _prepare(self, update: int) -> Lesson:
        samples = None if self.config.replay.all_pairs else self._core.sample()
        batch = Hindsight.of_samples(samples) if samples else Hindsight.of_pairs(self._core.sample_pairs())
        contexts = self._contexts(batch) if update % self.config.generator.generator_every == 0 else None
        real = len(batch.action)
        if self.config.learning.delusion_scale > 0:
            batch = self._with_delusions(batch)
        outlook = frozen_outlook(self._core.target_network.estimators, batch, self._remembered)
        return Lesson(batch, real, outlook, samples, contexts)

    def _contexts(self, batch: Hindsight) -> tuple[Tensor, Tensor]:
        """States, and beside each another one of its episode, in whose context it is to be reconstructed."""
        if self.config.replay.all_pairs:  # the batch is of too few episodes for a generator
            described, context = map(observations_tensor, self._core.sample_contexts())
            return described, context
        return batch.state[batch.source], batch.state[batch.target]

    def _with_delusions(self, batch: Hindsight) -> Hindsight:
        """The batch, and after it transitions that aim at imagined states, which may not exist (App., Alg. 3).

        One state is imagined for every sample, or for every episode of which there are pairs, and some of these pairs
        aim at it.
        """
        # The generator of the target network: while it stands still, it remembers what codes look like.
        generator, context = self._core.target_network.generator, batch.state[batch.firsts]
        codes = torch.from_numpy(self.rng.integers(2**generator.bits, size=(len(context), 1)))
        logits = generator.imagine(context, codes)[:, 0]  # (E, S)
        # Sampling from a softmax: the largest of logits with Gumbel noise.
        cell = (logits.numpy() + self.rng.gumbel(size=logits.shape)).argmax(-1)
        imagined = self._scene.place_agent(context.numpy(), cell[:, None])[:, 0]
        rows = torch.arange(len(batch.action))
        if self.config.replay.all_pairs:
            rows = torch.from_numpy(self.rng.permutation(len(rows))[: max(len(rows) // PAIRS_PER_DELUSION, 1)])
        return batch.aiming_also_at(observations_tensor(imagined), rows)
