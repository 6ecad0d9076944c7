"""Hindsight relabelling: which states of an episode become targets of which of its transitions (App., "HER")."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from skipper.config import ReplayConfig
from skipper.runtime.checks import check_choice, check_positive, check_shares
from skipper.runtime.jit import kernel
from skipper.types import Array

Strategy = Literal["episode", "future"]


@dataclass(frozen=True)
class HindsightConfig(ReplayConfig):
    """Replay with targets chosen in hindsight (paper, App. "HER")."""

    targets: int = 4
    """Hindsight targets per transition."""
    strategy: Strategy = "episode"
    """Where targets come from: the whole "episode", or only the "future" of the transition."""
    all_pairs: bool = False
    """Learn from all pairs of transitions and targets of a few episodes, encoding each state once, instead of single
    samples by priority. Not in the paper. Targets, strategy and priorities then have no effect."""
    pair_episodes: int = 6
    """Episodes per update with all_pairs."""
    pair_transitions: int = 6
    """Consecutive transitions of each episode; the states between them are targets too."""
    pair_targets: int = 4
    """Further targets of each episode, from anywhere in it."""
    pair_endings: float = 0.0
    """Share of the windows of transitions that end with their episode, where rewards and deaths are."""
    pair_rewarded: float = 0.0
    """Share of these that are of episodes whose last step was rewarded, which are rare at first."""
    other_episodes: float = 0.0
    """Share of the further targets that come from other episodes of the same task, where tasks are known."""
    independent_targets: bool = False
    """With all_pairs, choose windows and targets without looking at what happens in the window, for a share that rises
    to all of them over the first half of the run. A target that the episode went on to reach tells that its moves were
    lucky, a window at its end that the last was not: where actions have random effects, both mislead."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "targets", "pair_episodes", "pair_transitions", "pair_targets")
        check_shares(self, "pair_endings", "pair_rewarded", "other_episodes")
        check_choice("strategy", self.strategy, get_args(Strategy))


@kernel
def _relabel(keys, units, future, transitions, targets):
    count = 0
    states = len(keys)
    candidates = np.empty(states, np.int64)
    for step in range(states - 1):
        # Candidates are all states but the transition's own start.
        possible = 0
        for state in range(step + 1 if future else 0, states):
            if keys[state] != keys[step]:
                candidates[possible] = state
                possible += 1
        # Draw with replacement, and keep each state once.
        begin = count
        for draw in range(units.shape[1] if possible else 0):
            target = candidates[int(units[step, draw] * possible)]
            duplicate = False
            for before in range(begin, count):
                duplicate = duplicate or keys[targets[before]] == keys[target]
            if not duplicate:
                transitions[count] = step
                targets[count] = target
                count += 1
    return count


def relabel(keys: Array, units: Array, strategy: Strategy) -> tuple[Array, Array]:
    """Transitions and their target states, (M,) each, as indices into an episode with state ``keys`` (T + 1,).

    ``units`` (T, draws) in [0, 1) are the random draws. No transition gets its own start state, or a state twice.
    """
    steps, draws = units.shape
    assert keys.shape == (steps + 1,), (keys.shape, units.shape)
    transitions, targets = np.empty(steps * draws, np.int64), np.empty(steps * draws, np.int64)
    count = _relabel(keys, units, strategy == "future", transitions, targets)
    return transitions[:count], targets[:count]
