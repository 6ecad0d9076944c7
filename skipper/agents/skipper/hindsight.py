"""What an update learns from: hindsight transitions, imagined targets, and bootstrap targets (Alg. 1 and 3)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from skipper.agents.learning_core import LearningCore, named_rng
from skipper.agents.skipper.config import SkipperConfig
from skipper.nets.estimators import EstimatorNetwork, SkipperNetwork
from skipper.nets.frozen import FrozenNetwork
from skipper.nets.heads import expect_pairs, histograms_of_pairs
from skipper.nets.layers import observations_tensor
from skipper.replay.all_pairs import NO_PAIR, AllPairsSampler, Pairs, sample_contexts
from skipper.replay.prioritized import PrioritizedSampler, Samples
from skipper.runtime.jit import kernel
from skipper.types import Array, EnvironmentSpec, scene_of

PAIRS_PER_DELUSION = 4  # one of this many pairs is repeated with an imagined target


class Hindsight(NamedTuple):
    """P transitions with a target each, as indices into M states, so that each state is encoded once."""

    state: Tensor  # (M, W, H, C)
    episode: Tensor  # (M,) index of the state's episode
    source: Tensor  # (P,) into state
    next: Tensor  # (P,) into state
    target: Tensor  # (P,) into state
    action: Tensor  # (P,)
    reward: Tensor  # (P,)
    terminated: Tensor  # (P,) bool
    reached: Tensor  # (P,) bool, whether the next state is the target
    path_steps: Tensor  # (P,) steps in which the episode reached the target; inf where it did not or is unknown
    path_reward: Tensor  # (P,) discounted reward on that path; -inf where there is none
    following: Tensor  # (P,) the next transition with the same target, as an index into these; NO_PAIR where unknown
    steps: Tensor  # (P,) environment steps from source to next

    @classmethod
    def of_samples(cls, samples: Samples) -> "Hindsight":
        """Single samples: three states each."""
        B = len(samples.action)  # noqa: N806
        source, after, target = torch.arange(3 * B).split(B)
        return cls(
            observations_tensor(np.concatenate([samples.observation, samples.next_observation, samples.target])),
            torch.arange(B).repeat(3),
            source,
            after,
            target,
            torch.from_numpy(samples.action),
            torch.from_numpy(samples.reward),
            torch.from_numpy(samples.terminated),
            torch.from_numpy(samples.reached),
            torch.full((B,), torch.inf),
            torch.full((B,), -torch.inf),
            torch.full((B,), NO_PAIR),
            torch.ones(B),
        )

    @classmethod
    def of_pairs(cls, pairs: Pairs) -> "Hindsight":
        """All pairs of a few episodes."""
        rest = (torch.from_numpy(np.ascontiguousarray(column)) for column in pairs[2:])
        return cls(observations_tensor(pairs.observation), *(*rest, torch.ones(len(pairs.action))))

    @property
    def first_states(self) -> Tensor:
        """(E,) indices of the first state of every episode."""
        return torch.from_numpy(np.unique(self.episode.numpy(), return_index=True)[1])

    def with_targets(self, targets: Tensor, rows: Tensor, state_key: Callable[[Array], Array]) -> "Hindsight":
        """These transitions, then those of ``rows`` (R,) again with the new ``targets`` (E, W, H, C) of their episodes.

        ``state_key`` decides whether a transition reaches its new target.
        """
        new = self.episode[self.source[rows]]  # (R,) into targets
        key, target_key = state_key(self.state.numpy()), state_key(targets.numpy())
        unknown = torch.full((len(rows),), torch.inf)
        replaced = {
            "target": len(self.state) + new,
            "reached": torch.from_numpy(key[self.next[rows].numpy()] == target_key[new.numpy()]),
            "path_steps": unknown,
            "path_reward": -unknown,
            "following": torch.full((len(rows),), NO_PAIR),
        }
        again = (replaced[name] if name in replaced else getattr(self, name)[rows] for name in self._fields[2:])
        state, episode = torch.cat([self.state, targets]), torch.cat([self.episode, torch.arange(len(targets))])
        return Hindsight(state, episode, *map(torch.cat, zip(self[2:], again, strict=True)))


class BootstrapTargets(NamedTuple):
    """Estimates of the target network for every action in the next states, (P, A) each."""

    value: Tensor
    reward: Tensor
    distance: Tensor  # (P, A, K) histograms where whole distributions are backed up

    def of_action(self, action: Tensor) -> "BootstrapTargets":
        """(P,) each, for the next actions ``action`` (P,); distances (P, K) where they are histograms."""
        pairs = torch.arange(len(action))
        return BootstrapTargets(*(column[pairs, action] for column in self))


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
    # Encode only next states and targets; the other rows stay zero.
    used = torch.zeros(len(batch.state), dtype=torch.bool)
    used[batch.next] = used[batch.target] = True
    encoded = encode(batch.state[used])
    sigma = torch.zeros(len(batch.state), encoded.shape[1]).masked_scatter_(used[:, None], encoded)  # (M, D)
    pairs = sigma, batch.next, batch.target
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
    last, steps, reward = map(torch.from_numpy, _follow(*(column.numpy() for column in columns), discount))
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


class UpdateBatch(NamedTuple):
    """Everything that an update needs beside the online network."""

    hindsight: Hindsight  # P transitions with a target each
    real: int  # the first ones of these have targets from experience, the others imagined ones
    bootstrap: BootstrapTargets
    leaf: Array | None  # (real,) leaves of the sum tree, where transitions were drawn by priority
    weight: Tensor | None  # (real,) their importance weights
    contexts: tuple[Tensor, Tensor, Tensor] | None  # for the generator: states, others of their episodes, agents' cells
    goals: tuple[Tensor, Tensor] | None  # for the goal generator: states, and the cells in which agents were rewarded
    update: int  # number of updates before
    rate: float  # fraction of the learning rate


class UpdateBatches:
    """Prepares the batch of every update, from stored episodes and the frozen target network."""

    def __init__(
        self, core: LearningCore[SkipperNetwork], config: SkipperConfig, spec: EnvironmentSpec, frozen: FrozenNetwork
    ) -> None:
        """``frozen`` is the target network."""
        self.config, self._core, self._frozen = config, core, frozen
        self._scene, self._state_key = scene_of(spec), spec.state_key
        self.sampler: PrioritizedSampler | AllPairsSampler
        if config.replay.all_pairs:
            self.sampler = AllPairsSampler(core.store, config.replay, config.learning.task_discount)
        else:
            self.sampler = PrioritizedSampler(core.store, config.replay, named_rng(config.seed, "store"))
        self.rng = named_rng(config.seed, "imagine")

    def prepare(self) -> UpdateBatch:
        """The batch of the next update."""
        core, update, settings = self._core, self._core.updates, self.config.learning
        # Sample hindsight transitions (Alg. 1, "time to train"; App. "HER"): by priority, or all pairs.
        samples = core.sample(self.sampler) if isinstance(self.sampler, PrioritizedSampler) else None
        hindsight = Hindsight.of_samples(samples) if samples else Hindsight.of_pairs(self._sample_pairs())
        real = len(hindsight.action)
        # States in the contexts of others of their episodes, for the generators (App. "Checkpoint Generator").
        generate = update % self.config.generator.generator_every == 0
        contexts = self._contexts(hindsight) if generate else None
        goals = self._goals(hindsight) if generate and self.config.generator.learned_goal else None
        # Delusion suppression: the same transitions with imagined targets (Alg. 3).
        if settings.delusion_scale > 0:
            hindsight = self._with_imagined_targets(hindsight)
        # What the target network expects after the transitions (Sec. 3.3).
        distributions = self.config.planning.distance_distributions
        frozen = core.target_network.estimators
        bootstrap = bootstrap_targets(frozen, hindsight, self._frozen.encode, distributions=distributions)
        if settings.multistep:
            hindsight, bootstrap = extend(hindsight, bootstrap, settings.task_discount)
        leaf, weight = (samples.leaf, torch.from_numpy(samples.weight)) if samples else (None, None)
        return UpdateBatch(hindsight, real, bootstrap, leaf, weight, contexts, goals, update, core.rate)

    def update_priorities(self, batch: UpdateBatch, losses: Array | None) -> None:
        """Make the losses (real,) the new priorities of transitions that were drawn by priority (App. "Training")."""
        if isinstance(self.sampler, PrioritizedSampler):
            assert batch.leaf is not None
            assert losses is not None
            self.sampler.update_priorities(batch.leaf, losses)

    def _sample_pairs(self) -> Pairs:
        assert isinstance(self.sampler, AllPairsSampler)
        # Hindsight learns fast, but is biased where actions have random effects: its share falls over half of the run.
        independent = min(2.0 * self._core.progress, 1.0) if self.config.replay.independent_targets else 0.0
        pairs, images = self.sampler.sample(self._core.sample_rng, independent), self._core.images
        return images.of_pairs(pairs, self._core.target_updates) if images else pairs

    def _contexts(self, hindsight: Hindsight) -> tuple[Tensor, Tensor, Tensor]:
        """States to reconstruct, for each another state of its episode as context, and the agents' cells."""
        core = self._core
        if self.config.replay.all_pairs:  # these come from too few episodes for a generator
            states = sample_contexts(core.store, self.config.learning.batch_size, core.sample_rng)
            states = core.images.of_contexts(states, core.sample_rng) if core.images else states
            described, context = map(observations_tensor, states)
        else:
            described, context = hindsight.state[hindsight.source], hindsight.state[hindsight.target]
        return described, context, self._cells(described)

    def _goals(self, hindsight: Hindsight) -> tuple[Tensor, Tensor]:
        """Targets of rewarded transitions, and the cells that these entered."""
        rewarded = torch.nonzero(hindsight.reward > 0)[:, 0]
        return hindsight.state[hindsight.target[rewarded]], self._cells(hindsight.state[hindsight.next[rewarded]])

    def _cells(self, states: Tensor) -> Tensor:
        return torch.from_numpy(self._scene.agent_cell(states.numpy()))

    def _with_imagined_targets(self, hindsight: Hindsight) -> Hindsight:
        """The batch, followed by transitions whose targets are imagined and may not exist (Alg. 3).

        One target is imagined per episode. Single samples are all repeated with it, of all pairs a random part.
        """
        # Imagine a state in the context of each episode: a random code, and a cell sampled by Gumbel noise.
        context = hindsight.state[hindsight.first_states]  # (E, W, H, C)
        codes = self.rng.integers(2**self.config.generator.description_bits, size=(len(context), 1))
        logits = self._frozen.logits(context, torch.from_numpy(codes))[:, 0].numpy()  # (E, S)
        cell = (logits + self.rng.gumbel(size=logits.shape)).argmax(-1)
        imagined = self._scene.place_agent(context.numpy(), cell[:, None])[:, 0]
        # Replace the targets of some transitions by them.
        rows = torch.arange(len(hindsight.action))
        if self.config.replay.all_pairs:
            rows = torch.from_numpy(self.rng.permutation(len(rows))[: max(len(rows) // PAIRS_PER_DELUSION, 1)])
        return hindsight.with_targets(observations_tensor(imagined), rows, self._state_key)
