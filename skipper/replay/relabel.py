"""Hindsight relabelling: which states of an episode become targets of which of its transitions (App., "HER")."""

import numpy as np

from skipper.config import Strategy
from skipper.runtime.jit import kernel
from skipper.types import Array


@kernel
def _relabel(identity, units, future, transitions, targets):
    count = 0
    states = len(identity)
    candidates = np.empty(states, np.int64)
    for step in range(states - 1):
        possible = 0
        for state in range(step + 1 if future else 0, states):
            if identity[state] != identity[step]:
                candidates[possible] = state
                possible += 1
        drawn = count
        for draw in range(units.shape[1] if possible else 0):
            target = candidates[int(units[step, draw] * possible)]
            known = False
            for before in range(drawn, count):
                known = known or identity[targets[before]] == identity[target]
            if not known:
                transitions[count] = step
                targets[count] = target
                count += 1
    return count


def relabel(identity: Array, units: Array, strategy: Strategy) -> tuple[Array, Array]:
    """Transitions and the states (T + 1,) that become their targets, (M,) each.

    ``units`` (T, draws) in [0, 1) decide. A transition never gets its own start state, and no state twice.
    """
    steps, draws = units.shape
    assert identity.shape == (steps + 1,), (identity.shape, units.shape)
    transitions, targets = np.empty(steps * draws, np.int64), np.empty(steps * draws, np.int64)
    count = _relabel(identity, units, strategy == "future", transitions, targets)
    return transitions[:count], targets[:count]
