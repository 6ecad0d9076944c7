"""The replay buffer: episodes stored once, samples that are pairs of indices into them, and priorities."""

from typing import Any, NamedTuple

import numpy as np

from skipper.config import ReplayConfig
from skipper.replay.episodes import Episode
from skipper.replay.relabel import relabel
from skipper.replay.sum_tree import SumTree
from skipper.runtime.hashing import content_hashes
from skipper.runtime.jit import kernel
from skipper.types import Array

NO_EPISODE = -1
NO_TASK = -1
TRIES = 256  # random episodes that are looked at for another one of the same task


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
    """Many transitions and many targets of E episodes: M distinct states, P (transition, target) pairs."""

    task: Array  # (E,) numbers that episodes of a task share
    observation: Array  # (M, ...) each state once
    episode: Array  # (M,) of which of the E episodes
    source: Array  # (P,) into observation
    next: Array  # (P,) into observation
    target: Array  # (P,) into observation
    action: Array  # (P,)
    reward: Array  # (P,)
    terminated: Array  # (P,) bool
    reached: Array  # (P,) bool, the next state is the target
    steps: Array  # (P,) float32, after how many steps the episode comes to the target; inf where it does not
    gain: Array  # (P,) float32, the discounted reward that it collects until then; -inf where it does not


class Choice(NamedTuple):
    """What a kernel pairs: of each of E episodes a window of transitions, and some targets; in slots of the ring."""

    first: Array  # (E,) where the window begins
    steps: Array  # (E,) transitions in it
    last: Array  # (E,) the last state of the episode
    task: Array  # (E,) of the episodes
    reach: Array  # (E, G) targets beside the window's own states, of this episode or of another one


class Stored(NamedTuple):
    """What the kernel looks up of slots of the ring, and by how much a reward counts less with every step."""

    identity: Array
    reward: Array
    discount: float


@kernel
def _place(identity, slot, slots, known, found):
    """Where a state equal to that of ``slot`` stands among ``slots[known:found]``; ``found`` where none does."""
    for place in range(known, found):
        if identity[slots[place]] == identity[slot]:
            return place
    return found


@kernel
def _way(stored, leave, reach, last):
    """Steps from ``leave`` to the first later state equal to ``reach``, and what is collected on the way."""
    gain, weight = 0.0, 1.0
    for slot in range(leave, last):
        gain += weight * stored.reward[slot]
        weight *= stored.discount
        if stored.identity[slot + 1] == stored.identity[reach]:
            return slot + 1 - leave, gain
    return np.inf, -np.inf


@kernel
def _cross(choice, stored, slots, episode, pairs, ways):
    """All pairs of each window's transitions with its states and the other targets. Returns M and P."""
    identity = stored.identity
    found, count = 0, 0
    for row in range(len(choice.first)):
        known, first, length = found, choice.first[row], choice.steps[row]
        for group in (np.arange(first, first + length + 1), choice.reach[row]):
            for slot in group:
                if _place(identity, slot, slots, known, found) == found:
                    slots[found], episode[found] = slot, row
                    found += 1
        for leave in range(first, first + length):
            source = _place(identity, leave, slots, known, found)
            after = _place(identity, leave + 1, slots, known, found)
            for target in range(known, found):
                if target != source:  # a transition never aims at its own start
                    pairs[count] = source, after, target, leave
                    ways[count] = _way(stored, leave, slots[target], choice.last[row])
                    count += 1
    return found, count


@kernel
def _another(tasks, own, units, first, count):
    """Another episode of the same task as ``own``, or -1 where none of the random ones that ``units`` name is one."""
    for unit in units:
        record = (first + int(unit * count)) % len(tasks)
        if record != own and tasks[record] == tasks[own]:
            return record
    return -1


class Replay:
    """A ring of states, whole episodes at a time, and a ring of samples that point into it.

    A sample is two int32 (where the transition starts, which state is its target) and a leaf of the sum tree. With
    ``config.targets == 0`` there is no hindsight: one sample per transition. When room is needed, the oldest
    episode goes, and its samples with it.
    """

    def __init__(self, config: ReplayConfig, shape: tuple[int, ...]) -> None:
        self.config = config
        self._shape = shape
        self._targets = getattr(config, "targets", 0)
        slots, samples = config.capacity, config.capacity * max(self._targets, 1)
        # np.zeros commits memory only as it is written, so a large capacity costs nothing until it is used.
        self._rows = np.zeros((slots, int(np.prod(shape))), np.uint8)
        self._action = np.zeros(slots, np.int16)
        self._reward = np.zeros(slots, np.float32)
        self._terminated = np.zeros(slots, np.bool_)
        self._episode = np.full(slots, NO_EPISODE, np.int32)  # which record a state belongs to
        self._identity = np.zeros(slots, np.int64)  # of a state's content
        self._sample = np.zeros((samples, 2), np.int32)  # slots of the transition's start and of its target
        self._tree = SumTree(samples)
        self._records = np.zeros((slots // 2 + 1, 4), np.int64)  # first slot, states, first sample, samples
        self._tasks = np.full(len(self._records), NO_TASK, np.int64)
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

    def add(self, episode: Episode, rng: np.random.Generator, task: int = NO_TASK) -> None:
        """Store an episode and its hindsight samples, at the highest priority seen so far.

        ``task`` is a number that episodes of the same task share, where that is known.
        """
        states, steps = len(episode.observation), len(episode.action)
        if states > len(self._rows):
            raise ValueError(f"an episode of {states} states does not fit into a capacity of {len(self._rows)}")
        rows = episode.observation.reshape(states, -1)
        first = self._make_room(states)
        here = slice(first, first + states)
        self._rows[here] = rows
        self._identity[here] = identity = content_hashes(rows)
        self._action[first : first + steps] = episode.action
        self._reward[first : first + steps] = episode.reward
        self._terminated[here] = False
        self._terminated[first + steps - 1] = episode.terminated
        transitions, targets = self._relabel(identity, steps, rng)
        self._add_samples(first + transitions, first + targets)
        record = (self._first_record + self._record_count) % len(self._records)
        self._records[record] = first, states, self._sample_head, len(targets)
        self._tasks[record] = task
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

    def sample_pairs(self, rng: np.random.Generator, discount: float) -> Pairs:
        """A window of transitions of each of some episodes, all paired with all of the window's states and others.

        Long episodes are drawn more often. Neighbouring transitions share states, so few states make many pairs.
        ``discount`` is that of the rewards on the ways to the targets.
        """
        choice = self._choose(rng)
        states = len(choice.first) * (self.config.pair_transitions + 1 + self.config.pair_targets)
        slots, episode = np.empty(states, np.int64), np.empty(states, np.int64)
        pairs = np.empty((states * self.config.pair_transitions, 4), np.int64)
        ways = np.empty((len(pairs), 2), np.float32)
        stored = Stored(self._identity, self._reward, discount)
        states, count = _cross(choice, stored, slots, episode, pairs, ways)
        source, after, target, transition = pairs[:count].T
        return Pairs(
            task=choice.task,
            observation=self._observations(slots[:states]),
            episode=episode[:states],
            source=source,
            next=after,
            target=target,
            action=self._action[transition].astype(np.int64),
            reward=self._reward[transition],
            terminated=self._terminated[transition],
            reached=after == target,
            steps=ways[:count, 0],
            gain=ways[:count, 1],
        )

    def sample_contexts(self, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """``count`` random states, and for each another random state of its episode (it may be the same).

        None of them is the last one of its episode, which may have ended it.
        """
        record = self._random_records(count, rng)
        start, steps = self._records[record, 0], self._records[record, 1] - 1
        one, two = (self._observations(start + rng.integers(steps)) for _ in range(2))
        return one, two

    def _choose(self, rng: np.random.Generator) -> Choice:
        """Episodes, of each some transitions, and some targets of it and of other episodes of its task."""
        if not self._record_count:
            raise ValueError("the replay buffer holds no episodes yet")
        record = self._random_records(self.config.pair_episodes, rng)
        start, states = self._records[record, 0], self._records[record, 1]
        steps = np.minimum(self.config.pair_transitions, states - 1)
        latest = states - 1 - steps
        at_end = rng.random(len(record)) < self.config.pair_endings
        first = start + np.where(at_end, latest, rng.integers(latest + 1))
        reach = start[:, None] + rng.integers(states[:, None], size=(len(record), self.config.pair_targets))
        foreign = rng.random(reach.shape) < self.config.other_episodes
        for row, column in np.argwhere(foreign & (self._tasks[record] != NO_TASK)[:, None]):
            reach[row, column] = self._state_of_another(record[row], reach[row, column], rng)
        return Choice(first, steps, start + states - 1, self._tasks[record], reach)

    def _random_records(self, count: int, rng: np.random.Generator) -> Array:
        record = np.empty(0, np.int32)
        while len(record) < count:  # nearly all slots belong to an episode, so one round is the rule
            drawn = self._episode[rng.integers(self._used, size=2 * count)]
            record = np.concatenate([record, drawn[drawn != NO_EPISODE]])
        return record[:count]

    def _state_of_another(self, own: int, slot: int, rng: np.random.Generator) -> int:
        """The slot of a state of another episode of the same task; ``slot`` where none is found."""
        record = _another(self._tasks, own, rng.random(TRIES), self._first_record, self._record_count)
        if record < 0:
            return slot
        start, states = self._records[record, :2]
        return int(start + rng.integers(states))

    def _relabel(self, identity: Array, steps: int, rng: np.random.Generator) -> tuple[Array, Array]:
        if not self._targets:
            return np.arange(steps), np.arange(1, steps + 1)
        units = rng.random((steps, self._targets))
        return relabel(identity, units, self.config.strategy)

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
            "identity": self._identity[: self._used].copy(),
            "sample": self._sample[: self._samples_used].copy(),
            "records": self._records[: self._records_used].copy(),
            "tasks": self._tasks[: self._records_used].copy(),
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
        self._identity[:used] = state["identity"]
        self._sample[:samples] = state["sample"]
        self._records[: len(state["records"])] = state["records"]
        self._tasks[: len(state["tasks"])] = state["tasks"]
        self._tree.load_state_dict({"priorities": state["priorities"]})
        for name in self._COUNTERS:
            setattr(self, name, state["counters"][name])
