"""Proxy problems: small graphs of imagined states, pruned and solved (Sec. 3.1, App. "Planning")."""

from typing import NamedTuple

import numpy as np

from skipper.config import PlanningConfig
from skipper.planning.backups import back_up_edges
from skipper.planning.prune import EdgeStatus, prune_edges, prune_vertices
from skipper.planning.value_iteration import Values, choose_target, value_iteration
from skipper.runtime.jit import kernel
from skipper.types import CURRENT, Array, Edges, GraphView, LazyEdges, PlanView, Vertices


class ProxyProblem(NamedTuple):
    """B solved proxy problems, with every decision made on the way."""

    vertices: Vertices
    edges: Edges
    estimated: Array  # (B, N, N) distances as estimated, before backups
    trust: Array  # (B, N, N) factor of the revisit penalty on each edge, 1 where there is none
    kept: Array  # (B, N) bool, vertices that survived pruning
    status: Array  # (B, N, N) an EdgeStatus each
    values: Values
    target: Array  # (B,) index of the chosen vertex, -1 where the current state has no edge

    @property
    def targets(self) -> Array:
        """(B, W, H, C) observations of the chosen vertices; the current state where there is none."""
        rows = np.arange(len(self.target))
        return self.vertices.observation[rows, np.where(self.target < 0, CURRENT, self.target)]

    def view(self, row: int) -> PlanView:
        """One problem without its merged vertices; all indices refer to the vertices that are left."""
        present = np.flatnonzero(self.vertices.present[row])
        position = {int(vertex): index for index, vertex in enumerate(present)}
        pairs = np.ix_(present, present)
        status = self.status[row][pairs]
        usable = status == EdgeStatus.KEPT
        graph = GraphView(
            kept=self.kept[row, present],
            terminal=self.edges.terminal[row, present],
            value=self.values.vertex[row, present],
            worth=self.values.action[row, CURRENT, present],
            distance=self.edges.distance[row][pairs],
            reward=np.where(usable, self.edges.reward[row][pairs], 0.0),
            status=status,
            trust=np.where(usable, self.trust[row][pairs], 1.0),
            merged=int((~self.vertices.present[row]).sum()),
        )
        return PlanView(
            states=self.vertices.observation[row, present],
            route=[position[vertex] for vertex in self._route(row)],
            target=position.get(int(self.target[row]), -1),
            graph=graph,
        )

    def _route(self, row: int) -> list[int]:
        """The vertices of one plan: the current state, its target, and then the best successors up to the goal."""
        goal = self.kept.shape[1] - 1
        usable, values = self.status[row] == EdgeStatus.KEPT, self.values.action[row]
        route, vertex = [CURRENT], int(self.target[row])
        while vertex >= 0 and vertex not in route:
            route.append(vertex)
            continues = usable[vertex].any() and vertex != goal
            vertex = int(np.where(usable[vertex], values[vertex], -np.inf).argmax()) if continues else -1
        return route


def solve(
    vertices: Vertices, edges: Edges | LazyEdges, config: PlanningConfig, action_factors: Array | None = None
) -> ProxyProblem:
    """Prune and solve B proxy problems together (Alg. 1).

    ``action_factors`` (B, N, A) multiply the values of edges, by the first action of each.
    """
    # Lengthen edges to at least their first step and the rest of the way; not in the paper.
    backups = 0 if "edges" in config.oracle_parts else config.edge_backups  # true edges need none
    estimated, edges = edges.distance, back_up_edges(edges, vertices.present, backups)
    # Prune vertices: k-medoids on min(D, D^T) (Alg. 1, "k-medoid pruning"; Alg. 2).
    kept = prune_vertices(vertices, edges, config)
    # Prune edges: long ones, and those that no plan needs (Alg. 1, "prune edges that are too far-fetched").
    status = prune_edges(vertices, edges, kept, config)
    usable = status == EdgeStatus.KEPT
    # Annotate the edges that are left with rewards (Alg. 1, "use estimators to annotate the edges").
    annotated = edges if isinstance(edges, Edges) else edges.where(usable)
    # Weigh edges by the penalties for revisits and for length; neither is in the paper.
    trust = edge_factors(annotated, action_factors)
    weight = weigh_edges(annotated.distance, usable, trust, config)
    # Solve, and choose the vertex to go to (Alg. 1, "run value iteration ..., select the target checkpoint").
    values = value_iteration(weight * annotated.reward, weight * annotated.discount, config.sweeps)
    target = choose_target(values.action[:, CURRENT], usable[:, CURRENT], annotated.distance[:, CURRENT])
    return ProxyProblem(vertices, annotated, estimated, trust, kept, status, values, target)


def edge_factors(edges: Edges, action_factors: Array | None) -> Array:
    """(B, N, N) factors of edges from those of their first actions, (B, N, A); 1 where there are none."""
    if action_factors is None or edges.action is None:
        return np.ones(edges.distance.shape)
    return np.take_along_axis(action_factors, edges.action, axis=2)


def weigh_edges(distance: Array, usable: Array, trust: Array, config: PlanningConfig) -> Array:
    """(B, N, N) weights of edges: ``trust``, reduced by the penalty for length; 0 where not ``usable``."""
    penalty = 0.0 if "edges" in config.oracle_parts else config.edge_length_penalty  # true edges need none
    weight = np.zeros(distance.shape)
    _weigh(*(column.reshape(-1) for column in (distance, usable, trust)), 1.0 - penalty, weight.reshape(-1))
    return weight


@kernel
def _weigh(distance, usable, trust, factor, weight):
    """Fill ``weight`` (E,) of the usable edges; ``factor`` is that of an edge of one step."""
    for edge in range(len(weight)):
        if usable[edge]:
            weight[edge] = trust[edge] * factor ** (distance[edge] * distance[edge])
