"""All pairs of some transitions and targets of a few episodes, each state encoded once; not in the paper."""

from typing import Any, NamedTuple

import numpy as np

from skipper.replay.relabel import HindsightConfig
from skipper.replay.store import NO_EPISODE, NO_TASK, EpisodeStore
from skipper.replay.windows import draw_windows, with_rewarded
from skipper.runtime.jit import kernel
from skipper.types import Array

NO_PAIR = -1


class Pairs(NamedTuple):
    """Many transitions and many targets of E episodes: M distinct states, P (transition, target) pairs."""

    task: Array  # (E,) numbers that episodes of a task share
    observation: Array  # (M, ...) each state once
    episode: Array  # (M,) which of the E episodes it belongs to
    source: Array  # (P,) into observation
    next: Array  # (P,) into observation
    target: Array  # (P,) into observation
    action: Array  # (P,)
    reward: Array  # (P,)
    terminated: Array  # (P,) bool
    reached: Array  # (P,) bool, whether the next state is the target
    path_steps: Array  # (P,) float32, steps after which the episode reaches the target; inf where it does not
    path_reward: Array  # (P,) float32, discounted reward collected until then; -inf where it does not
    following: Array  # (P,) the pair of the window's next transition with the same target; NO_PAIR where there is none


class PairedWindows(NamedTuple):
    """What is paired: a window of transitions of each of E episodes, and further targets; in slots of the store."""

    first: Array  # (E,) start of the window
    steps: Array  # (E,) transitions in it
    last: Array  # (E,) last state of the episode
    task: Array  # (E,) of the episode
    targets: Array  # (E, G) further targets, of this episode or of another one
    past_only: Array  # (E,) bool, of the window's own states, a transition has only those before it as targets


class StateColumns(NamedTuple):
    """What the kernel reads of the store's slots, and the discount of rewards along a path."""

    key: Array
    reward: Array
    discount: float


class AllPairsSampler:
    """Pairs a window of transitions of each of some episodes with all states of the window and further targets.

    Consecutive transitions share states, so few states make many pairs.
    """

    def __init__(self, store: EpisodeStore, config: HindsightConfig, discount: float) -> None:
        """``discount`` is that of the rewards along the paths to the targets."""
        self.config, self._store, self._discount = config, store, discount

    def ready(self) -> bool:
        """Whether there is a pair: an episode with two different states."""
        keys = map(self._store.keys_of, self._store.numbers())
        return any((episode != episode[0]).any() for episode in keys)

    def sample(self, rng: np.random.Generator, independent: float = 0.0) -> Pairs:
        """All pairs of ``config.pair_episodes`` episodes; long ones are drawn more often.

        Of a share of ``independent`` of them, what to learn does not depend on what happened.
        """
        store, windows = self._store, self._draw(rng, independent)
        states = len(windows.first) * (self.config.pair_transitions + 1 + self.config.pair_targets)
        slots, episode = np.empty(states, np.int64), np.empty(states, np.int64)
        pairs = np.empty((states * self.config.pair_transitions, 5), np.int64)
        paths = np.empty((len(pairs), 2), np.float32)
        columns = StateColumns(store.key, store.reward, self._discount)
        states, count = _pair_all(windows, columns, slots, episode, pairs, paths)
        if not count and independent:  # every window is one step long, and nobody else was there
            return self.sample(rng)
        source, after, target, transition, following = pairs[:count].T
        return Pairs(
            task=windows.task,
            observation=store.observations(slots[:states]),
            episode=episode[:states],
            source=source,
            next=after,
            target=target,
            action=store.action[transition].astype(np.int64),
            reward=store.reward[transition],
            terminated=store.terminated[transition],
            reached=after == target,
            path_steps=paths[:count, 0],
            path_reward=paths[:count, 1],
            following=following,
        )

    def state_dict(self) -> dict[str, Any]:
        """Nothing: all state is in the store."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to load."""

    def _draw(self, rng: np.random.Generator, independent: float) -> PairedWindows:
        """A window of transitions of each of some episodes, and targets for them."""
        if independent == 0.0:
            return self._draw_own(rng, self.config.pair_episodes)
        count = rng.binomial(self.config.pair_episodes, independent)
        drawn = self._draw_own(rng, self.config.pair_episodes - count), self._draw_independent(rng, count)
        return PairedWindows(*map(np.concatenate, zip(*drawn, strict=True)))

    def _draw_own(self, rng: np.random.Generator, count: int) -> PairedWindows:
        """Windows with their own states as targets, and others of their episodes and of others of their tasks."""
        store, config = self._store, self.config
        drawn = draw_windows(store, count, config.pair_transitions, config.pair_endings, rng, config.pair_rewarded)
        episode = drawn.episode
        start, states, task = store.first[episode], store.states[episode], store.task[episode]
        # Further targets: of the whole episode, some of them replaced by states of other episodes of its task.
        targets = start[:, None] + rng.integers(states[:, None], size=(len(episode), config.pair_targets))
        replaced = rng.random(targets.shape) < config.other_episodes
        for row, column in np.argwhere(replaced & (task != NO_TASK)[:, None]):
            other = store.another_of_task(episode[row], rng)
            if other != NO_EPISODE:
                targets[row, column] = store.first[other] + rng.integers(store.states[other])
        return PairedWindows(drawn.first, drawn.steps, drawn.last, task, targets, np.zeros(count, bool))

    def _draw_independent(self, rng: np.random.Generator, count: int) -> PairedWindows:
        """Windows and targets that do not depend on what happens in the window.

        Each window begins where an episode was in a state of another one, its guide, and has states of its guide as
        targets. A share of ``pair_endings`` begins in one of the last states of the guide, and has the very last one
        as a target. Where nobody else was in that state, the window begins anywhere, with states before it as targets.
        """
        store, config = self._store, self.config
        # Guides, and their states in which windows begin.
        guide = store.random_episodes(count, rng)
        at_end = rng.random(len(guide)) < config.pair_endings
        guide = with_rewarded(store, guide, at_end, config.pair_rewarded, rng)
        begin, end = store.first[guide], store.first[guide] + store.states[guide] - 1
        first = rng.integers(np.where(at_end, np.maximum(end - config.pair_transitions, begin), begin), end)
        # Windows: where others were in these states, or else anywhere.
        visit = np.array([store.another_visit(slot, rng) for slot in first], np.int64)
        followed = visit != first
        anyone = store.random_episodes(count, rng)
        anywhere = rng.integers(store.first[anyone], store.first[anyone] + store.states[anyone] - 1)
        first = np.where(followed, visit, anywhere)
        episode = store.episode_of(first)
        last = store.first[episode] + store.states[episode] - 1
        steps = np.minimum(config.pair_transitions, last - first)
        # What to reach.
        earliest, latest = np.where(followed, begin, store.first[episode]), np.where(followed, end, first)
        targets = rng.integers(earliest[:, None], latest[:, None] + 1, size=(count, config.pair_targets))
        targets[:, 0] = np.where(followed & at_end, end, targets[:, 0])
        return PairedWindows(first, steps, last, store.task[episode], targets, np.ones(count, bool))


@kernel
def _index_of(key, slot, slots, begin, end):
    """The index in ``slots[begin:end]`` of a state equal to that of ``slot``; ``end`` where there is none."""
    for index in range(begin, end):
        if key[slots[index]] == key[slot]:
            return index
    return end


@kernel
def _path(columns, source, target, last):
    """Steps from ``source`` to the first later state equal to ``target``, and the discounted reward until then."""
    reward, weight = 0.0, 1.0
    for slot in range(source, last):
        reward += weight * columns.reward[slot]
        weight *= columns.discount
        if columns.key[slot + 1] == columns.key[target]:
            return slot + 1 - source, reward
    return np.inf, -np.inf


@kernel
def _pair_all(windows, columns, slots, episode, pairs, paths):
    """All pairs of each window's transitions with its targets, written in place; M and P."""
    key = columns.key
    states, count = 0, 0
    given = np.empty(len(slots), np.bool_)  # whether a state is a further target
    for row in range(len(windows.first)):
        # The distinct states of this episode are slots[begin:states], first those of the window in order of time.
        begin, first, length = states, windows.first[row], windows.steps[row]
        for slot in range(first, first + length + 1):
            if _index_of(key, slot, slots, begin, states) == states:
                slots[states], episode[states], given[states] = slot, row, False
                states += 1
        for slot in windows.targets[row]:
            index = _index_of(key, slot, slots, begin, states)
            if index == states:
                slots[states], episode[states] = slot, row
                states += 1
            given[index] = True
        before = np.full(states - begin, NO_PAIR)  # the pairs of the transition before, by target
        seen = begin  # own states until now are those before this
        for transition in range(first, first + length):
            source = _index_of(key, transition, slots, begin, states)
            after = _index_of(key, transition + 1, slots, begin, states)
            seen = max(seen, source + 1)
            for target in range(begin, states):
                pair = NO_PAIR
                # A transition's own start is never its target.
                if target != source and (given[target] or target < seen or not windows.past_only[row]):
                    pair = count
                    pairs[pair] = source, after, target, transition, NO_PAIR
                    paths[pair] = _path(columns, transition, slots[target], windows.last[row])
                    count += 1
                if before[target - begin] != NO_PAIR:
                    pairs[before[target - begin], 4] = pair
                before[target - begin] = pair
    return states, count


def sample_contexts(store: EpisodeStore, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """``count`` random states, and for each another random state of its episode, possibly the same one.

    The last state of an episode, which may be terminal, is never drawn.
    """
    episode = store.random_episodes(count, rng)
    first, steps = store.first[episode], store.states[episode] - 1
    one, two = (store.observations(first + rng.integers(steps)) for _ in range(2))
    return one, two
