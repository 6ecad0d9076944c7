"""Windows of consecutive transitions of a few episodes, each state encoded once; not in the paper."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skipper.config import ReplayConfig
from skipper.replay.store import NO_EPISODE, NO_TASK, EpisodeStore
from skipper.runtime.checks import check_positive, check_shares
from skipper.runtime.jit import kernel
from skipper.types import Array


@dataclass(frozen=True)
class WindowConfig(ReplayConfig):
    """Replay of an agent without targets: single transitions by priority, or windows of consecutive ones."""

    window_episodes: int = 0
    """Learn from a window of transitions of each of this many episodes, encoding each state once, instead of single
    transitions by priority. Batch size and priorities then have no effect. 0, as in the paper: single transitions."""
    window_transitions: int = 12
    """Consecutive transitions of each of these episodes."""
    window_endings: float = 0.0
    """Share of the windows that end with their episode, where rewards and deaths are."""
    window_rewarded: float = 0.0
    """Share of these that are of episodes whose last step was rewarded, which are rare at first."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "window_transitions")
        check_shares(self, "window_endings", "window_rewarded")
        if self.window_episodes < 0:
            raise ValueError(f"window_episodes must not be negative, got {self.window_episodes}")


class Windows(NamedTuple):
    """A window of consecutive transitions of each of E episodes, in slots of the store."""

    episode: Array  # (E,) numbers of the episodes
    first: Array  # (E,) start of the window
    steps: Array  # (E,) transitions in it
    last: Array  # (E,) last state of the episode


def draw_windows(
    store: EpisodeStore,
    episodes: int,
    transitions: int,
    endings: float,
    rng: np.random.Generator,
    rewarded: float = 0.0,
) -> Windows:
    """Windows of at most ``transitions``; a share of ``endings`` ends with its episode, where rewards and deaths are.

    The others lie anywhere. Long episodes are drawn more often. Of those at the end, a share of ``rewarded`` is of
    episodes whose last step was rewarded, as far as there are any.
    """
    episode = store.random_episodes(episodes, rng)
    at_end = rng.random(episodes) < endings
    episode = with_rewarded(store, episode, at_end, rewarded, rng)
    start, states = store.first[episode], store.states[episode]
    steps = np.minimum(transitions, states - 1)
    latest = states - 1 - steps
    first = start + np.where(at_end, latest, rng.integers(latest + 1))
    return Windows(episode, first, steps, start + states - 1)


def with_rewarded(
    store: EpisodeStore, episode: Array, at_end: Array, rewarded: float, rng: np.random.Generator
) -> Array:
    """The episodes (E,), a share of ``rewarded`` of those ``at_end`` (E,) replaced by ones that ended with a reward."""
    if rewarded > 0.0:
        for row in np.flatnonzero(at_end & (rng.random(len(episode)) < rewarded)):
            found = store.random_rewarded(rng)
            episode[row] = found if found != NO_EPISODE else episode[row]
    return episode


class Transitions(NamedTuple):
    """P transitions among M distinct states, window by window, in the order of time."""

    task: Array  # (M,) numbers that states of a task share; where tasks are unknown, each state has its own
    observation: Array  # (M, ...) each state once
    source: Array  # (P,) into observation
    next: Array  # (P,) into observation
    action: Array  # (P,)
    reward: Array  # (P,)
    terminated: Array  # (P,) bool
    collected: Array  # (P,) float32, the discounted reward of the episode from this transition to its end


class WindowSampler:
    """Draws windows of transitions. Consecutive transitions share states, so few states make many transitions."""

    def __init__(self, store: EpisodeStore, config: WindowConfig, discount: float) -> None:
        """``discount`` is that of the rewards which an episode collects."""
        self.config, self._store, self._discount = config, store, discount

    def ready(self) -> bool:
        """Whether an episode has ended."""
        return len(self._store) > 0

    def sample(self, rng: np.random.Generator) -> Transitions:
        """All transitions of ``config.window_episodes`` windows."""
        store, config = self._store, self.config
        shape = config.window_episodes, config.window_transitions
        windows = draw_windows(store, *shape, config.window_endings, rng, config.window_rewarded)
        ends = np.cumsum(windows.steps)  # (E,) one past the last transition of each window
        start = np.arange(ends[-1]) + np.repeat(windows.first - (ends - windows.steps), windows.steps)  # (P,) slots
        # The distinct states of all windows.
        slots = np.concatenate([start, windows.first + windows.steps])
        _, index, inverse = np.unique(store.key[slots], return_index=True, return_inverse=True)
        source = inverse[: len(start)]
        # The next state is where the next transition starts, or the last state of the window.
        after = np.roll(source, -1)
        after[ends - 1] = inverse[len(start) :]
        owner = np.append(np.repeat(windows.episode, windows.steps), windows.episode)
        task = store.task[owner[index]]
        return Transitions(
            task=np.where(task == NO_TASK, store.key[slots[index]], task),
            observation=store.observations(slots[index]),
            source=source,
            next=after,
            action=store.action[start].astype(np.int64),
            reward=store.reward[start],
            terminated=store.terminated[start],
            collected=_collected(start, np.repeat(windows.last, windows.steps), store.reward, self._discount),
        )

    def state_dict(self) -> dict[str, Any]:
        """Nothing: all state is in the store."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to load."""


@kernel
def _collected(start, last, reward, discount):
    """(P,) discounted reward from the slots ``start`` (P,) to the end of their episodes, the slots ``last`` (P,)."""
    found = np.zeros(len(start), np.float32)
    for row in range(len(start)):
        total = 0.0
        for slot in range(last[row] - 1, start[row] - 1, -1):
            total = reward[slot] + discount * total
        found[row] = total
    return found
