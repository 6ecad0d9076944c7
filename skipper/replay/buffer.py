"""The replay buffer: episodes stored once, samples that are pairs of indices into them, and priorities."""

from typing import Any, NamedTuple

import numpy as np

from skipper.config import ReplayConfig
from skipper.kernels import kernel
from skipper.replay.episodes import Episode
from skipper.replay.hindsight import relabel, same_row, state_identities
from skipper.replay.sum_tree import SumTree
from skipper.types import Array

NO_EPISODE = -1


class Samples(NamedTuple):
    """A batch of transitions, each with the target that hindsight gave it."""

    places: Array  # (B,) to give back with new priorities
    observation: Array  # (B, ...)
    action: Array  # (B,)
    reward: Array  # (B,)
    next_observation: Array  # (B, ...)
    terminated: Array  # (B,) bool
    target: Array  # (B, ...); without hindsight the next observation
    weight: Array  # (B,) float32 importance weights, the largest of them 1


class Pairs(NamedTuple):
    """Many transitions and many targets of a few episodes: M distinct states, P (transition, target) pairs."""

    observation: Array  # (M, ...) each state once
    source: Array  # (P,) into observation
    next: Array  # (P,) into observation
    target: Array  # (P,) into observation
    action: Array  # (P,)
    reward: Array  # (P,)
    terminated: Array  # (P,) bool
    reached: Array  # (P,) bool, the next state is the target


@kernel
def _cross(rows, starts, states, steps, aims, slots, source, after, target, transition):
    """All pairs of the chosen steps and aims (E, .) of each episode; states once each. Returns M and P."""
    found, pairs = 0, 0
    for episode in range(len(starts)):
        position = np.full(states[episode], -1, np.int64)  # of each state in ``slots``
        chosen = np.concatenate((steps[episode], steps[episode] + 1, aims[episode]))
        for state in chosen:
            if position[state] < 0:
                position[state] = found
                slots[found] = starts[episode] + state
                found += 1
        for step in steps[episode]:
            for aim in aims[episode]:
                leave, reach = starts[episode] + step, starts[episode] + aim
                if same_row(rows[leave], rows[reach]):
                    continue  # a transition never aims at its own start
                source[pairs] = position[step]
                after[pairs] = position[step + 1]
                target[pairs] = position[aim]
                transition[pairs] = leave
                pairs += 1
    return found, pairs


class Replay:
    """A ring of states, whole episodes at a time, and a ring of samples that point into it.

    A sample is two int32 (where the transition starts, which state is its target) and a leaf of the sum tree. With
    ``config.targets == 0`` there is no hindsight: one sample per transition. When room is needed, the oldest
    episode goes, and its samples with it.
    """

    def __init__(self, config: ReplayConfig, shape: tuple[int, ...]) -> None:
        self.config = config
        self._shape = shape
        slots, samples = config.capacity, config.capacity * max(config.targets, 1)
        # np.zeros commits memory only as it is written, so a large capacity costs nothing until it is used.
        self._rows = np.zeros((slots, int(np.prod(shape))), np.uint8)
        self._action = np.zeros(slots, np.int16)
        self._reward = np.zeros(slots, np.float32)
        self._terminated = np.zeros(slots, np.bool_)
        self._episode = np.full(slots, NO_EPISODE, np.int32)  # which record a state belongs to
        self._sample = np.zeros((samples, 2), np.int32)  # slots of the transition's start and of its target
        self._tree = SumTree(samples)
        self._records = np.zeros((slots // 2 + 1, 4), np.int64)  # first slot, states, first sample, samples
        self._first_record = self._record_count = 0
        self._slot_head = self._sample_head = self._sample_count = 0
        # How far each ring was ever written: more need not be saved.
        self._used = self._samples_used = self._records_used = 0
        self._greatest_loss = 1.0

    def __len__(self) -> int:
        """Number of samples that can be drawn."""
        return self._sample_count

    @property
    def episodes(self) -> int:
        """Number of stored episodes."""
        return self._record_count

    @property
    def bytes_per_sample(self) -> float:
        """Memory of a sample beyond the shared episodes."""
        return (self._sample.nbytes + self._tree.nbytes) / len(self._sample)

    def add(self, episode: Episode, rng: np.random.Generator) -> None:
        """Store an episode and its hindsight samples, at the highest priority seen so far."""
        states, steps = len(episode.observation), len(episode.action)
        if states > len(self._rows):
            raise ValueError(f"an episode of {states} states does not fit into a capacity of {len(self._rows)}")
        rows = episode.observation.reshape(states, -1)
        first = self._make_room(states)
        here = slice(first, first + states)
        self._rows[here] = rows
        self._action[first : first + steps] = episode.action
        self._reward[first : first + steps] = episode.reward
        self._terminated[here] = False
        self._terminated[first + steps - 1] = episode.terminated
        transitions, targets = self._relabel(rows, steps, rng)
        self._add_samples(first + transitions, first + targets)
        record = (self._first_record + self._record_count) % len(self._records)
        self._records[record] = first, states, self._sample_head, len(targets)
        self._episode[here] = record
        self._samples_used = max(self._samples_used, min(self._sample_head + len(targets), len(self._sample)))
        self._sample_head = (self._sample_head + len(targets)) % len(self._sample)
        self._records_used = max(self._records_used, record + 1)
        self._record_count += 1
        self._slot_head = first + states
        self._used = max(self._used, self._slot_head)

    def sample(self, batch: int, beta: float, rng: np.random.Generator) -> Samples:
        """``batch`` samples by priority, with importance weights of exponent ``beta``."""
        if not self._sample_count:
            raise ValueError("the replay buffer holds no samples yet")
        index = self._tree.sample(rng.random(batch))
        step, target = self._sample[index].T
        weight = (self._sample_count * self._tree.priorities(index) / self._tree.total) ** -beta
        return Samples(
            places=index,
            observation=self._observations(step),
            action=self._action[step].astype(np.int64),
            reward=self._reward[step],
            next_observation=self._observations(step + 1),
            terminated=self._terminated[step],
            target=self._observations(target),
            weight=(weight / weight.max()).astype(np.float32),
        )

    def update(self, places: Array, losses: Array) -> None:
        """Give samples the priorities that follow from their losses (B,)."""
        if self.config.prioritized:
            self._greatest_loss = max(self._greatest_loss, float(losses.max()))
            self._tree.update(places, self._priority(losses.astype(np.float64)))

    def sample_pairs(self, episodes: int, transitions: int, targets: int, rng: np.random.Generator) -> Pairs:
        """``transitions`` x ``targets`` pairs of each of ``episodes`` episodes, longer ones more likely."""
        if not self._record_count:
            raise ValueError("the replay buffer holds no episodes yet")
        record = self._episode[rng.integers(self._used, size=4 * episodes)]
        record = record[record != NO_EPISODE][:episodes]
        while len(record) < episodes:  # most slots belong to an episode, so this hardly ever runs
            more = self._episode[rng.integers(self._used, size=episodes)]
            record = np.concatenate([record, more[more != NO_EPISODE]])[:episodes]
        starts, states = self._records[record, 0], self._records[record, 1]
        steps = (rng.random((episodes, transitions)) * (states - 1)[:, None]).astype(np.int64)
        aims = (rng.random((episodes, targets)) * states[:, None]).astype(np.int64)
        most = episodes * transitions * targets
        slots = np.empty(episodes * (2 * transitions + targets), np.int64)
        source, after, target, transition = (np.empty(most, np.int64) for _ in range(4))
        count, pairs = _cross(
            self._rows[: self._used], starts, states, steps, aims, slots, source, after, target, transition
        )
        source, after, target, transition = (column[:pairs] for column in (source, after, target, transition))
        slots = slots[:count]
        return Pairs(
            observation=self._observations(slots),
            source=source,
            next=after,
            target=target,
            action=self._action[transition].astype(np.int64),
            reward=self._reward[transition],
            terminated=self._terminated[transition],
            reached=(self._rows[transition + 1] == self._rows[slots[target]]).all(-1),
        )

    def _relabel(self, rows: Array, steps: int, rng: np.random.Generator) -> tuple[Array, Array]:
        if not self.config.targets:
            return np.arange(steps), np.arange(1, steps + 1)
        units = rng.random((steps, self.config.targets))
        return relabel(state_identities(rows), units, self.config.strategy)

    def _add_samples(self, step: Array, target: Array) -> None:
        count = len(step)
        assert self._sample_count + count <= len(self._sample)  # states run out before samples do
        places = (self._sample_head + np.arange(count)) % len(self._sample)
        self._sample[places, 0] = step
        self._sample[places, 1] = target
        self._tree.fill(self._sample_head, count, self._priority(self._greatest_loss))
        self._sample_count += count

    def _make_room(self, states: int) -> int:
        """The first of ``states`` neighbouring free slots, evicting the oldest episodes that stand in the way."""
        first = self._slot_head
        if first + states > len(self._rows):
            # An episode is not split over the end of the ring. What lies behind the head is oldest: it goes first.
            while self._record_count and self._oldest()[0] >= first:
                self._evict()
            first = 0
        while self._record_count and first <= self._oldest()[0] < first + states:
            self._evict()
        return first

    def _oldest(self) -> Array:
        return self._records[self._first_record]

    def _evict(self) -> None:
        first, states, first_sample, samples = self._oldest()
        self._episode[first : first + states] = NO_EPISODE
        self._tree.fill(int(first_sample), int(samples), 0.0)
        self._sample_count -= int(samples)
        self._first_record = (self._first_record + 1) % len(self._records)
        self._record_count -= 1

    def _priority(self, losses: Any) -> Any:
        # Rounding can take a divergence just below zero.
        return (np.maximum(losses, 0.0) + 1e-6) ** self.config.alpha if self.config.prioritized else 1.0

    def _observations(self, slots: Array) -> Array:
        return self._rows[slots].reshape(len(slots), *self._shape)

    _COUNTERS = (
        "_first_record",
        "_record_count",
        "_slot_head",
        "_sample_head",
        "_sample_count",
        "_used",
        "_samples_used",
        "_records_used",
        "_greatest_loss",
    )

    def state_dict(self) -> dict[str, Any]:
        """All stored episodes, samples and priorities; only what was ever used takes room."""
        return {
            "rows": self._rows[: self._used].copy(),
            "action": self._action[: self._used].copy(),
            "reward": self._reward[: self._used].copy(),
            "terminated": self._terminated[: self._used].copy(),
            "episode": self._episode[: self._used].copy(),
            "sample": self._sample[: self._samples_used].copy(),
            "records": self._records[: self._records_used].copy(),
            **self._tree.state_dict(self._samples_used),
            "counters": {name: getattr(self, name) for name in self._COUNTERS},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue with a saved buffer of the same configuration."""
        used, samples = len(state["rows"]), len(state["sample"])
        self._rows[:used] = state["rows"]
        self._action[:used] = state["action"]
        self._reward[:used] = state["reward"]
        self._terminated[:used] = state["terminated"]
        self._episode[:used] = state["episode"]
        self._sample[:samples] = state["sample"]
        self._records[: len(state["records"])] = state["records"]
        self._tree.load_state_dict({"priorities": state["priorities"]})
        for name in self._COUNTERS:
            setattr(self, name, state["counters"][name])
