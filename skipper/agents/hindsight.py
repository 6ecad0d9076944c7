"""Learning of agents that walk to targets: transitions with targets of hindsight or imagination (Alg. 1 and 3)."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from skipper.agents.learning_core import LearningCore, OnlineNetwork, named_rng
from skipper.agents.target_config import TargetRunConfig
from skipper.losses import histogram_loss, scalar_loss, total_loss, weighted_mean
from skipper.nets.compiled.pair_losses import pair_losses, supports
from skipper.nets.heads import PairwiseHead
from skipper.nets.layers import observations_tensor
from skipper.replay.all_pairs import NO_PAIR, AllPairsSampler, Pairs, sample_contexts
from skipper.replay.prioritized import PrioritizedSampler, Samples
from skipper.runtime.mixed_radix import most_likely
from skipper.types import Array, EnvironmentSpec, parts_of, placement_of, scene_of

Network = TypeVar("Network", bound=nn.Module)

PAIRS_PER_DELUSION = 4  # one of this many pairs is repeated with an imagined target
UNSEEN_TRIES = 16  # states imagined per episode to find one that is unseen


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

    def to(self, device: str) -> "Hindsight":
        """The same with all columns but states and episodes on the device; networks take states from the CPU."""
        return Hindsight(self.state, self.episode, *(column.to(device) for column in self[2:]))

    @property
    def first_states(self) -> Tensor:
        """(E,) indices of the first state of every episode."""
        return torch.from_numpy(np.unique(self.episode.numpy(), return_index=True)[1])

    @torch.no_grad()
    def encode_next(self, encode: Callable[[Tensor], Tensor]) -> Tensor:
        """(M, D) partial states of next states and targets, by ``encode``, (m, W, H, C) to (m, D); 0 for the others."""
        used = torch.zeros(len(self.state), dtype=torch.bool)
        used[self.next] = used[self.target] = True
        encoded = encode(self.state[used])
        everywhere = torch.zeros(len(self.state), encoded.shape[1], device=encoded.device)
        return everywhere.masked_scatter_(used[:, None].to(encoded.device), encoded)

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


class UpdateBatch(NamedTuple):
    """Everything that an update needs beside the online network."""

    hindsight: Hindsight  # P transitions with a target each
    real: int  # the first ones of these have targets from experience, the others imagined ones
    bootstrap: Any  # what the target network expects after them, as the agent's losses need it; of tensors
    leaf: Array | None  # (real,) leaves of the sum tree, where transitions were drawn by priority
    weight: Tensor | None  # (real,) their importance weights
    contexts: tuple[Tensor, Tensor, Tensor] | None  # for the generator: states, others of their episodes, placements
    goals: tuple[Tensor, Tensor] | None  # for the goal generator: states, and the placements that were rewarded
    update: int  # number of updates before
    rate: float  # fraction of the learning rate


class Imagination(Protocol):
    """Where imagined states come from."""

    def logits(self, observation: Tensor, codes: Tensor) -> Tensor:
        """(B, N, S) logits of the agent's cell, or of all parts of a placement, for codes (B, N) in (B, W, H, C)."""


class HindsightBatches:
    """Draws transitions with targets from stored episodes, and states in the contexts of others."""

    def __init__(
        self, core: LearningCore[Any], config: TargetRunConfig, spec: EnvironmentSpec, imagination: Imagination
    ) -> None:
        self.config, self.core, self._imagination = config, core, imagination
        self._scene, self._state_key, self._parts = scene_of(spec), spec.state_key, parts_of(spec)
        self.sampler: PrioritizedSampler | AllPairsSampler
        if config.replay.all_pairs:
            self.sampler = AllPairsSampler(core.store, config.replay, config.learning.task_discount)
        else:
            self.sampler = PrioritizedSampler(core.store, config.replay, named_rng(config.seed, "store"))
        self.rng = named_rng(config.seed, "imagine")

    def sample(self) -> tuple[Hindsight, Samples | None]:
        """Hindsight transitions: by priority, with the samples that they are, or all pairs of a few episodes."""
        samples = self.core.sample(self.sampler) if isinstance(self.sampler, PrioritizedSampler) else None
        return (Hindsight.of_samples(samples) if samples else Hindsight.of_pairs(self._sample_pairs())), samples

    def update_priorities(self, leaf: Array | None, losses: Array | None) -> None:
        """Make the losses (B,) the new priorities of transitions that were drawn by priority (App. "Training")."""
        if isinstance(self.sampler, PrioritizedSampler):
            assert leaf is not None
            assert losses is not None
            self.sampler.update_priorities(leaf, losses)

    def _sample_pairs(self) -> Pairs:
        assert isinstance(self.sampler, AllPairsSampler)
        # Hindsight learns fast, but is biased where actions have random effects: its share falls over half of the run.
        independent = min(2.0 * self.core.progress, 1.0) if self.config.replay.independent_targets else 0.0
        pairs, images = self.sampler.sample(self.core.sample_rng, independent), self.core.images
        return images.of_pairs(pairs, self.core.target_updates) if images else pairs

    def contexts(self, hindsight: Hindsight | None) -> tuple[Tensor, Tensor, Tensor]:
        """States to reconstruct, for each another state of its episode as context, and their placements.

        They are those of ``hindsight``, but with all pairs drawn anew: these come from too few episodes.
        """
        core = self.core
        if self.config.replay.all_pairs:
            states = sample_contexts(core.store, self.config.learning.batch_size, core.sample_rng)
            states = core.images.of_contexts(states, core.sample_rng) if core.images else states
            described, context = map(observations_tensor, states)
        else:
            assert hindsight is not None
            described, context = hindsight.state[hindsight.source], hindsight.state[hindsight.target]
        return described, context, self.placements(described)

    def placements(self, states: Tensor) -> Tensor:
        """(B,) the agents' cells, or more of what changes within an episode, in states (B, W, H, C)."""
        return torch.from_numpy(placement_of(self._scene, states.numpy()))

    def with_imagined_targets(self, hindsight: Hindsight) -> Hindsight:
        """The batch, followed by transitions whose targets are imagined and may not exist (Alg. 3).

        Each episode has one such target, or none where all that is imagined was seen and only unseen states are wanted.
        Single samples are all repeated with it, of all pairs a random part.
        """
        # Imagine states in the context of each episode, and take one; some episodes may have none.
        imagined = self._imagine(hindsight.state[hindsight.first_states].numpy())  # (E, K, W, H, C)
        offered = np.ones(imagined.shape[:2], bool)
        if self.config.learning.delusion_targets == "unseen":
            offered = ~self._seen(imagined)
        targets = imagined[np.arange(len(imagined)), offered.argmax(-1)]
        # Replace the targets of some transitions by them.
        rows = torch.arange(len(hindsight.action))
        if self.config.replay.all_pairs:
            rows = torch.from_numpy(self.rng.permutation(len(rows))[: max(len(rows) // PAIRS_PER_DELUSION, 1)])
        has_target = torch.from_numpy(offered.any(-1))[hindsight.episode[hindsight.source[rows]]]
        return hindsight.with_targets(observations_tensor(targets), rows[has_target], self._state_key)

    def _imagine(self, context: Array) -> Array:
        """(E, K, W, H, C) states for random codes in contexts (E, W, H, C); placements are sampled by Gumbel noise."""
        count = UNSEEN_TRIES if self.config.learning.delusion_targets == "unseen" else 1
        codes = self.rng.integers(2**self.config.generator.description_bits, size=(len(context), count))
        logits = self._imagination.logits(observations_tensor(context), torch.from_numpy(codes)).cpu().numpy()
        placement = most_likely(logits + self.rng.gumbel(size=logits.shape), self._parts)  # (E, K)
        return self._scene.place_agent(context, placement)

    def _seen(self, states: Array) -> Array:
        """(E, K) whether a stored episode was in one of the states (E, K, W, H, C), or in a symmetric image of it."""
        flat = states.reshape(-1, *states.shape[2:])
        images = self.core.images.all_of(flat) if self.core.images else flat[None]
        seen = np.any(self.core.store.contains(self._state_key(images)), axis=0)
        return np.reshape(seen, states.shape[:2])


class UpdateResult(NamedTuple):
    """What an update reports."""

    metrics: Mapping[str, float]
    losses: Array | None  # (real,) of the transitions with real targets, for their priorities; None where unknown


class Updater(Generic[Network]):
    """Updates estimators and generators. They share no weights, so their two steps are independent."""

    def __init__(self, config: Any, online: OnlineNetwork[Network]) -> None:
        """Everything that an update changes is in ``online``."""
        self.config, self.online = config, online

    @classmethod
    def build(cls, config: Any, spec: EnvironmentSpec) -> Self:
        """An updater with a network of its own."""
        raise NotImplementedError

    def losses(self, batch: UpdateBatch) -> dict[str, Tensor]:
        """Losses of the estimators by name: distances (P,), all others (real,)."""
        raise NotImplementedError

    def update(self, batch: UpdateBatch) -> UpdateResult:
        """One update of everything."""
        estimated = self.update_estimators(batch)
        generated = self.update_generators(batch)
        self.online.update_average()
        return estimated._replace(metrics=all_metrics(estimated.metrics, generated))

    def update_estimators(self, batch: UpdateBatch) -> UpdateResult:
        """One step of the estimators and of the policy that walks to targets."""
        loss, losses, per_pair = self.total(batch)
        self.online.step(loss, batch.rate)
        pairs = torch.tensor(float(len(batch.hindsight.action)))
        return UpdateResult(means({"loss": loss, "pairs": pairs} | losses), per_pair.detach().cpu().numpy())

    def total(self, batch: UpdateBatch) -> tuple[Tensor, dict[str, Tensor], Tensor]:
        """The loss of the estimators, all losses by name, and those of pairs with real targets, (real,)."""
        losses, real = self.losses(batch), batch.real
        # Real targets: the sum of all losses, by importance weight (App. "Training").
        delusion = losses["distance"][real:]
        losses["distance"] = losses["distance"][:real]
        per_pair = total_loss(losses, dict.fromkeys(losses, 1.0))  # (real,)
        loss = self.weighted(per_pair, torch.ones_like(per_pair) if batch.weight is None else batch.weight)
        # Imagined targets: only their distances are learned, without importance weights (Alg. 3).
        if len(delusion):
            losses["delusion"] = delusion
            loss = loss + (self.config.learning.delusion_scale * delusion).mean()
        return loss, losses, per_pair

    def weighted(self, losses: Tensor, weight: Tensor) -> Tensor:
        """The mean of losses (real,) by importance weight (real,)."""
        return weighted_mean(losses, weight)

    def update_generators(self, batch: UpdateBatch) -> dict[str, float]:
        """One step of the generators where any is due; returns its losses."""
        return {}

    def synchronise(self) -> None:
        """Updates are complete when they return: nothing to wait for."""

    def restart(self) -> None:
        """The next update starts from the weights in ``online``: nothing to send."""


def head_losses(
    head: PairwiseHead, sigma: Tensor, source: Tensor, target: Tensor, action: Tensor, value: Tensor
) -> Tensor:
    """(P,) losses of a head's histograms of ``action`` against scalars or histograms ``value``, (P,) or (P, K).

    Pairs are indices into ``sigma``.
    """
    if supports(head):
        return pair_losses(head, sigma, source, target, action, value)
    logits = head(sigma[source], sigma[target])  # (P, A, K)
    chosen = logits[torch.arange(len(action), device=action.device), action]  # (P, K)
    return scalar_loss(chosen, value, head.support) if value.ndim == 1 else histogram_loss(chosen, value)


def all_metrics(estimated: Mapping[str, float], generated: Mapping[str, float]) -> dict[str, float]:
    """The metrics of both steps of an update."""
    return {**estimated, **generated, "loss": estimated["loss"] + sum(generated.values())}


def means(losses: Mapping[str, Tensor]) -> dict[str, float]:
    """Losses as numbers."""
    return {name: float(loss.detach().mean()) for name, loss in losses.items()}
