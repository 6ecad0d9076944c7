"""Prioritized replay of single transitions, with hindsight targets where an agent has targets (App., "HER")."""

from typing import Any, NamedTuple

import numpy as np

from skipper.config import ReplayConfig
from skipper.replay.relabel import HindsightConfig, relabel
from skipper.replay.store import EpisodeStore
from skipper.replay.sum_tree import SumTree
from skipper.types import Array

SMALLEST_LOSS = 1e-6  # added to every loss, so that each sample can be drawn again


class Samples(NamedTuple):
    """A batch of transitions, each with its hindsight target."""

    leaf: Array  # (B,) of the sum tree, to update the priorities
    observation: Array  # (B, ...)
    action: Array  # (B,)
    reward: Array  # (B,)
    next_observation: Array  # (B, ...)
    terminated: Array  # (B,) bool
    target: Array  # (B, ...); without hindsight the next observation
    reached: Array  # (B,) bool, whether the next state is the target
    weight: Array  # (B,) float32 importance weights, the largest of them 1


class PrioritizedSampler:
    """Draws hindsight samples by priority.

    A sample is two slots of the store (where the transition starts, which state is its target) and a leaf of the sum
    tree. Without a ``HindsightConfig`` there is no hindsight: one sample per transition. Samples live in a ring and
    leave with their episodes.
    """

    def __init__(self, store: EpisodeStore, config: ReplayConfig, relabel_rng: np.random.Generator) -> None:
        """``relabel_rng`` draws the hindsight targets of new episodes."""
        self.config, self._store, self._relabel_rng = config, store, relabel_rng
        per_transition = config.targets if isinstance(config, HindsightConfig) else 1
        self._sample = np.zeros((store.capacity * per_transition, 2), np.int32)  # slots of start and target
        self._tree = SumTree(len(self._sample))
        self._samples_of = np.zeros(store.max_episodes, np.int64)  # number of samples of each episode
        self._head = self._count = 0
        self._used = 0  # how far the ring was ever written: the rest is not saved
        self._greatest_loss = 1.0
        store.listen(self)

    def __len__(self) -> int:
        """Number of samples that can be drawn."""
        return self._count

    @property
    def bytes_per_sample(self) -> float:
        """Memory of a sample beyond the shared episodes."""
        return (self._sample.nbytes + self._tree.nbytes) / len(self._sample)

    def ready(self) -> bool:
        """Whether anything can be drawn."""
        return self._count > 0

    def added(self, episode: int) -> None:
        """Relabel the transitions of a new episode; their samples get the highest priority so far."""
        first = self._store.first[episode]
        transitions, targets = self._relabel(self._store.keys_of(episode))
        count = len(transitions)
        assert self._count + count <= len(self._sample)  # the store runs out of states before this runs out of samples
        leaves = (self._head + np.arange(count)) % len(self._sample)
        self._sample[leaves, 0] = first + transitions
        self._sample[leaves, 1] = first + targets
        self._tree.fill(self._head, count, self._priority(self._greatest_loss))
        self._samples_of[episode] = count
        self._count += count
        self._used = max(self._used, min(self._head + count, len(self._sample)))
        self._head = (self._head + count) % len(self._sample)

    def evicted(self, episode: int) -> None:
        """Remove the samples of the oldest episode, which are the oldest ones."""
        oldest, count = (self._head - self._count) % len(self._sample), int(self._samples_of[episode])
        self._tree.fill(oldest, count, 0.0)
        self._count -= count

    def cleared(self) -> None:
        """There are no samples left: forget how great losses were."""
        self._greatest_loss = 1.0

    def sample(self, batch: int, beta: float, rng: np.random.Generator) -> Samples:
        """``batch`` samples by priority, with importance weights of exponent ``beta``."""
        if not self._count:
            raise ValueError("there are no samples yet")
        store = self._store
        leaf = self._tree.sample(rng.random(batch))
        start, target = self._sample[leaf].T
        weight = (self._count * self._tree.priorities(leaf) / self._tree.total) ** -beta
        return Samples(
            leaf=leaf,
            observation=store.observations(start),
            action=store.action[start].astype(np.int64),
            reward=store.reward[start],
            next_observation=store.observations(start + 1),
            terminated=store.terminated[start],
            target=store.observations(target),
            reached=store.key[start + 1] == store.key[target],
            weight=(weight / weight.max()).astype(np.float32),
        )

    def update_priorities(self, leaf: Array, losses: Array) -> None:
        """Set the priorities of drawn samples from their losses (B,)."""
        if self.config.prioritized:
            self._greatest_loss = max(self._greatest_loss, float(losses.max()))
            self._tree.update(leaf, self._priority(losses.astype(np.float64)))

    def _relabel(self, keys: Array) -> tuple[Array, Array]:
        """Transitions and their targets, as indices into the states of an episode."""
        steps, config = len(keys) - 1, self.config
        if not isinstance(config, HindsightConfig):
            return np.arange(steps), np.arange(1, steps + 1)
        return relabel(keys, self._relabel_rng.random((steps, config.targets)), config.strategy)

    def _priority(self, losses: Any) -> Any:
        # Rounding can make a divergence slightly negative.
        return (np.maximum(losses, 0.0) + SMALLEST_LOSS) ** self.config.alpha if self.config.prioritized else 1.0

    def state_dict(self) -> dict[str, Any]:
        """Samples, priorities and the random stream; only the used part of the ring."""
        return {
            "sample": self._sample[: self._used].copy(),
            **self._tree.state_dict(self._used),
            "samples_of": self._samples_of[: self._store.used_numbers].copy(),
            "counters": {
                "head": self._head,
                "count": self._count,
                "used": self._used,
                "greatest_loss": self._greatest_loss,
            },
            "rng": self._relabel_rng.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue with saved samples; the store must hold the episodes that they were saved with."""
        counters = state["counters"]
        self._sample[: len(state["sample"])] = state["sample"]
        self._tree.load_state_dict({"priorities": state["priorities"]})
        self._samples_of[: len(state["samples_of"])] = state["samples_of"]
        self._head, self._count, self._used = counters["head"], counters["count"], counters["used"]
        self._greatest_loss = counters["greatest_loss"]
        self._relabel_rng.bit_generator.state = state["rng"]
