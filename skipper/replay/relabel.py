"""Hindsight relabelling: which states of an episode become targets of which of its transitions (App., "HER")."""

import numpy as np

from skipper.config import Strategy
from skipper.runtime.jit import kernel
from skipper.types import Array


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
