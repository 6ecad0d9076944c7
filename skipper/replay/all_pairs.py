"""All pairs of some transitions and targets of a few episodes, each state encoded once; not in the paper."""

from typing import Any, NamedTuple

import numpy as np

from skipper.config import HindsightConfig
from skipper.replay.store import NO_EPISODE, NO_TASK, EpisodeStore
from skipper.replay.windows import draw_windows
from skipper.runtime.jit import kernel
from skipper.types import Array


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


class PairedWindows(NamedTuple):
    """What is paired: a window of transitions of each of E episodes, and further targets; in slots of the store."""

    first: Array  # (E,) start of the window
    steps: Array  # (E,) transitions in it
    last: Array  # (E,) last state of the episode
    task: Array  # (E,) of the episode
    targets: Array  # (E, G) targets beside the window's own states, of this episode or of another one


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

    def sample(self, rng: np.random.Generator) -> Pairs:
        """All pairs of ``config.pair_episodes`` episodes; long ones are drawn more often."""
        store, windows = self._store, self._draw(rng)
        states = len(windows.first) * (self.config.pair_transitions + 1 + self.config.pair_targets)
        slots, episode = np.empty(states, np.int64), np.empty(states, np.int64)
        pairs = np.empty((states * self.config.pair_transitions, 4), np.int64)
        paths = np.empty((len(pairs), 2), np.float32)
        columns = StateColumns(store.key, store.reward, self._discount)
        states, count = _pair_all(windows, columns, slots, episode, pairs, paths)
        source, after, target, transition = pairs[:count].T
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
        )

    def state_dict(self) -> dict[str, Any]:
        """Nothing: all state is in the store."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to load."""

    def _draw(self, rng: np.random.Generator) -> PairedWindows:
        """Episodes, a window of transitions of each, and targets of it and of other episodes of its task."""
        store, config = self._store, self.config
        drawn = draw_windows(store, config.pair_episodes, config.pair_transitions, config.pair_endings, rng)
        episode = drawn.episode
        start, states, task = store.first[episode], store.states[episode], store.task[episode]
        # Further targets: of the whole episode, some of them replaced by states of other episodes of its task.
        targets = start[:, None] + rng.integers(states[:, None], size=(len(episode), config.pair_targets))
        replaced = rng.random(targets.shape) < config.other_episodes
        for row, column in np.argwhere(replaced & (task != NO_TASK)[:, None]):
            other = store.another_of_task(episode[row], rng)
            if other != NO_EPISODE:
                targets[row, column] = store.first[other] + rng.integers(store.states[other])
        return PairedWindows(drawn.first, drawn.steps, drawn.last, task, targets)


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
    """All pairs of each window's transitions with its states and further targets, written in place; M and P."""
    key = columns.key
    states, count = 0, 0
    for row in range(len(windows.first)):
        # The distinct states of this episode are slots[begin:states].
        begin, first, length = states, windows.first[row], windows.steps[row]
        for group in (np.arange(first, first + length + 1), windows.targets[row]):
            for slot in group:
                if _index_of(key, slot, slots, begin, states) == states:
                    slots[states], episode[states] = slot, row
                    states += 1
        for transition in range(first, first + length):
            source = _index_of(key, transition, slots, begin, states)
            after = _index_of(key, transition + 1, slots, begin, states)
            for target in range(begin, states):
                if target != source:  # a transition's own start is never its target
                    pairs[count] = source, after, target, transition
                    paths[count] = _path(columns, transition, slots[target], windows.last[row])
                    count += 1
    return states, count


def sample_contexts(store: EpisodeStore, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """``count`` random states, and for each another random state of its episode, possibly the same one.

    The last state of an episode, which may be terminal, is never drawn.
    """
    episode = store.random_episodes(count, rng)
    first, steps = store.first[episode], store.states[episode] - 1
    one, two = (store.observations(first + rng.integers(steps)) for _ in range(2))
    return one, two
