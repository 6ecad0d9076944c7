"""Pruning of proxy problems: crowded vertices first, then edges that no plan should use (Alg. 1 and 2)."""

from enum import IntEnum

import numpy as np

from skipper.config import PlanningConfig
from skipper.planning.medoids import k_medoids
from skipper.runtime.jit import kernel
from skipper.types import CURRENT, GOAL, Array, Edges, LazyEdges, Vertices


class EdgeStatus(IntEnum):
    """Whether an edge was kept, or the reason why it was pruned."""

    KEPT = 0
    VERTEX_GONE = 1  # an endpoint was merged or pruned
    SELF_LOOP = 2
    INTO_CURRENT = 3  # leads back to the current state, or to a vertex that matches it
    FROM_TERMINAL = 4
    TOO_LONG = 5


def prune_vertices(vertices: Vertices, edges: Edges | LazyEdges, config: PlanningConfig) -> Array:
    """(B, N) bool, the at most ``max_vertices`` vertices that are kept, current state and goal included (Alg. 2)."""
    present = vertices.present
    N = present.shape[1]  # noqa: N806
    if not config.prune_vertices or config.max_vertices >= N:
        return present
    # Truncate distances: from terminal states they are infinite, which k-medoids cannot handle.
    truncated = np.where(
        edges.terminal[:, :, None], config.max_distance, np.minimum(edges.distance, config.max_distance)
    )
    symmetric = np.minimum(truncated, truncated.transpose(0, 2, 1))  # min(D, D^T)
    symmetric[:, np.arange(N), np.arange(N)] = 0.0
    fixed = np.zeros_like(present)
    fixed[:, GOAL] = True
    # Cluster all vertices, with current state and goal among the medoids (authors' code).
    if config.cluster_current_state:
        fixed[:, CURRENT] = True
        return k_medoids(symmetric, present, fixed, config.max_vertices)
    # Cluster checkpoints, with the goal among the medoids (Alg. 2); the current state is a vertex anyway (Sec. 3.1).
    checkpoints = present.copy()
    checkpoints[:, CURRENT] = False
    kept = k_medoids(symmetric, checkpoints, fixed, config.max_vertices - 1)
    kept[:, CURRENT] = True
    return kept


def prune_edges(vertices: Vertices, edges: Edges | LazyEdges, kept: Array, config: PlanningConfig) -> Array:
    """(B, N, N) the EdgeStatus of every edge between the ``kept`` (B, N) vertices; the first reason that applies.

    True edges are not pruned for their length.
    """
    threshold = np.inf if "edges" in config.oracle_parts else config.edge_threshold
    matched = vertices.key if config.match_observations else vertices.code
    status = np.empty(edges.distance.shape, np.int8)
    _prune_edges(edges.distance, edges.terminal, matched == matched[:, [CURRENT]], kept, threshold, status)
    return status


@kernel
def _prune_edges(distance, terminal, is_current, kept, threshold, status):
    """Fill ``status`` (B, N, N)."""
    for problem, source, target in np.ndindex(status.shape):
        if not (kept[problem, source] and kept[problem, target]):
            status[problem, source, target] = EdgeStatus.VERTEX_GONE
        elif source == target:
            status[problem, source, target] = EdgeStatus.SELF_LOOP
        elif is_current[problem, target]:
            status[problem, source, target] = EdgeStatus.INTO_CURRENT
        elif terminal[problem, source]:
            status[problem, source, target] = EdgeStatus.FROM_TERMINAL
        elif distance[problem, source, target] > threshold or np.isinf(distance[problem, source, target]):
            status[problem, source, target] = EdgeStatus.TOO_LONG
        else:
            status[problem, source, target] = EdgeStatus.KEPT
