"""Backups of edges within a proxy problem: an edge is no shorter than its first step and the rest of the way.

Long edges are estimated less well than those of one step. Where a neighbour of a vertex is a vertex too, the two
say how long an edge is that begins with the step to this neighbour. Not in the paper; it holds where no move is random.
"""

import numpy as np

from skipper.runtime.jit import kernel
from skipper.types import CURRENT, Array, Edges, LazyEdges

NEIGHBOUR = 1.25  # steps, between estimates of one and of two
NONE = -1


def back_up_edges(edges: Edges | LazyEdges, present: Array, sweeps: int) -> Edges | LazyEdges:
    """The edges between vertices ``present`` (B, N) after some sweeps; unchanged where their actions are not known.

    An edge from i to j whose first action leads to the vertex k becomes as long as the two edges over k together, if
    that is longer, and its discount at most their product. Over a terminal vertex leads no edge.
    """
    if sweeps == 0 or edges.action is None:
        return edges
    # No way leads on from a terminal vertex, so that none leads over it.
    distance = np.where(edges.terminal[:, :, None], np.inf, edges.distance)
    discount = np.where(edges.terminal[:, :, None], 0.0, edges.discount)
    neighbour = np.full((*present.shape, int(edges.action.max(initial=0)) + 1), NONE)  # (B, N, A)
    _find_neighbours(distance, edges.action, present, neighbour)
    for _ in range(sweeps):
        before = distance.copy(), discount.copy()
        _back_up(*before, edges.action, present, neighbour, distance, discount)
    return edges._replace(distance=distance, discount=discount)


@kernel
def _find_neighbours(distance, action, present, neighbour):
    """Fill ``neighbour`` (B, N, A) with the nearest vertex that each action leads to in one step, if there is one."""
    for problem, source, target in np.ndindex(distance.shape):
        # Edges into the current state are always pruned, and need not be estimated.
        if target in (source, CURRENT) or not (present[problem, source] and present[problem, target]):
            continue
        steps, first = distance[problem, source, target], action[problem, source, target]
        known = neighbour[problem, source, first]
        if steps <= NEIGHBOUR and (known == NONE or steps < distance[problem, source, known]):
            neighbour[problem, source, first] = target


@kernel
def _back_up(distance, discount, action, present, neighbour, new_distance, new_discount):
    """One sweep over all edges: fill the last two, (B, N, N) each, where edges become longer."""
    for problem, source, target in np.ndindex(distance.shape):
        if source == target or not (present[problem, source] and present[problem, target]):
            continue
        over = neighbour[problem, source, action[problem, source, target]]
        if over in (NONE, target):
            continue
        steps = distance[problem, source, over] + distance[problem, over, target]
        if steps > distance[problem, source, target]:
            new_distance[problem, source, target] = steps
            both = discount[problem, source, over] * discount[problem, over, target]
            new_discount[problem, source, target] = min(both, discount[problem, source, target])
