"""Proxy problems: small graphs of imagined states, pruned and solved (Sec. 3.1, App. "Planning")."""

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple, Protocol

import numpy as np

from skipper.config import PlanningConfig
from skipper.planning.medoids import k_medoids
from skipper.planning.value_iteration import Values, choose_target, value_iteration
from skipper.runtime.hashing import content_hashes
from skipper.runtime.jit import kernel
from skipper.types import Array, GraphView, PlanView

CURRENT, GOAL = 0, -1  # where these two stand among the vertices of every problem


class Vertices(NamedTuple):
    """N states of each of B problems: first the current one, last the goal, imagined ones between them."""

    observation: Array  # (B, N, W, H, C)
    code: Array  # (B, N) partial descriptions
    present: Array  # (B, N) bool, False where a state is there already
    identity: Array  # (B, N) numbers that are equal where states are


class Edges(NamedTuple):
    """What is estimated of every pair of vertices, from the first to the second."""

    distance: Array  # (B, N, N) steps
    discount: Array  # (B, N, N)
    reward: Array  # (B, N, N)
    terminal: Array  # (B, N) bool, vertices that end the episode
    action: Array | None = None  # (B, N, N) with which the policy sets out, where that is known


class LazyEdges(NamedTuple):
    """Edges whose rewards are estimated only where pruning leaves an edge, which is rare."""

    distance: Array  # (B, N, N) steps
    discount: Array  # (B, N, N)
    terminal: Array  # (B, N) bool
    action: Array  # (B, N, N)
    reward: Callable[[Array], Array]  # edges (B, N, N) bool to (B, N, N), 0 elsewhere

    def where(self, usable: Array) -> Edges:
        """With the rewards of the edges ``usable`` (B, N, N) bool."""
        return Edges(self.distance, self.discount, self.reward(usable), self.terminal, self.action)


class EstimateEdges(Protocol):
    """Where edges come from: learned estimators, or the truth."""

    def __call__(self, vertices: Vertices) -> Edges | LazyEdges:
        """Annotate all pairs."""


class EdgeStatus(IntEnum):
    """What became of an edge, and why."""

    KEPT = 0
    VERTEX_GONE = 1  # one of its ends was merged or pruned
    SELF_LOOP = 2
    INTO_CURRENT = 3  # leads back to the current state, or to a vertex with its code
    FROM_TERMINAL = 4
    TOO_LONG = 5


class ProxyProblem(NamedTuple):
    """B solved problems, with everything that was decided and why."""

    vertices: Vertices
    edges: Edges
    trust: Array  # (B, N, N) how far each edge is believed, 1 where nothing is doubted
    kept: Array  # (B, N) bool, vertices that survived pruning
    status: Array  # (B, N, N) of every edge
    values: Values
    target: Array  # (B,) the chosen vertex, -1 where the current state has no edge

    @property
    def targets(self) -> Array:
        """(B, W, H, C) observations of the chosen vertices; the current state where there is none."""
        rows = np.arange(len(self.target))
        return self.vertices.observation[rows, np.where(self.target < 0, CURRENT, self.target)]

    def view(self, row: int) -> PlanView:
        """One solved problem; vertices that are not present are left out and only counted."""
        present = np.flatnonzero(self.vertices.present[row])
        index = {int(vertex): position for position, vertex in enumerate(present)}
        inner = np.ix_(present, present)
        graph = GraphView(
            kept=self.kept[row, present],
            terminal=self.edges.terminal[row, present],
            value=self.values.vertex[row, present],
            worth=self.values.action[row, CURRENT, present],
            distance=self.edges.distance[row][inner],
            reward=np.where(self.status[row][inner] == EdgeStatus.KEPT, self.edges.reward[row][inner], 0.0),
            status=self.status[row][inner],
            trust=self.trust[row][inner],
            merged=int((~self.vertices.present[row]).sum()),
        )
        states = self.vertices.observation[row, present]
        path = [index[vertex] for vertex in route(self, row)]
        return PlanView(states, path, index.get(int(self.target[row]), -1), graph)


def route(problem: ProxyProblem, row: int) -> list[int]:
    """The vertices that the plan of one problem leads over: its target, then the best after that, up to the goal."""
    goal = problem.kept.shape[1] - 1
    usable, values = problem.status[row] == EdgeStatus.KEPT, problem.values.action[row]
    vertices, at = [CURRENT], int(problem.target[row])
    while at >= 0 and at not in vertices:
        vertices.append(at)
        possible = usable[at].any() and at != goal
        at = int(np.where(usable[at], values[at], -np.inf).argmax()) if possible else -1
    return vertices


def identities(states: Array) -> Array:
    """(...) numbers that are equal where the states (..., W, H, C) are."""
    return content_hashes(states.reshape(-1, int(np.prod(states.shape[-3:])))).reshape(states.shape[:-3])


def merged_vertices(observation: Array, code: Array) -> Vertices:
    """States (B, N, W, H, C) and their codes (B, N), with equal ones merged; current state and goal always stay."""
    identity = identities(observation)
    return Vertices(observation, code, _first_of_equal(identity), identity)


@kernel
def _first_of_equal(identity):
    """(B, N) bool, False where one of the imagined states is like an earlier one or like one of the ends."""
    present, last = np.ones(identity.shape, np.bool_), identity.shape[1] - 1
    for problem in range(len(identity)):
        for vertex in range(1, last):
            for other in range(vertex):
                if identity[problem, other] == identity[problem, vertex]:
                    present[problem, vertex] = False
            if identity[problem, last] == identity[problem, vertex]:
                present[problem, vertex] = False
    return present


def keep_vertices(vertices: Vertices, edges: Edges | LazyEdges, config: PlanningConfig) -> Array:
    """(B, N) bool, the medoids of min(D, D^T), among them the current state and the goal."""
    present = vertices.present
    if not config.prune_vertices or present.shape[1] <= config.max_vertices:
        return present
    # From terminal states there is no way at all, and clustering needs finite numbers: the longest known distance.
    cut = np.where(edges.terminal[:, :, None], config.max_distance, np.minimum(edges.distance, config.max_distance))
    fixed = np.zeros_like(present)
    fixed[:, [CURRENT, GOAL]] = True
    symmetric = np.minimum(cut, cut.transpose(0, 2, 1))
    symmetric[:, np.arange(present.shape[1]), np.arange(present.shape[1])] = 0.0
    return k_medoids(symmetric, present, fixed, config.max_vertices)


def prune_edges(vertices: Vertices, edges: Edges | LazyEdges, kept: Array, config: PlanningConfig) -> Array:
    """(B, N, N) the status of every edge; of several reasons to go the first is told."""
    longest = np.inf if "edges" in config.oracle_parts else config.edge_threshold
    told_by = vertices.identity if config.match_observations else vertices.code
    status = np.empty(edges.distance.shape, np.int8)
    _prune(edges.distance, edges.terminal, told_by == told_by[:, [CURRENT]], kept, longest, status)
    return status


@kernel
def _prune(distance, terminal, back, kept, longest, status):
    """Fill ``status`` (B, N, N)."""
    for problem, one, two in np.ndindex(status.shape):
        if not (kept[problem, one] and kept[problem, two]):
            status[problem, one, two] = EdgeStatus.VERTEX_GONE
        elif one == two:
            status[problem, one, two] = EdgeStatus.SELF_LOOP
        elif back[problem, two]:
            status[problem, one, two] = EdgeStatus.INTO_CURRENT
        elif terminal[problem, one]:
            status[problem, one, two] = EdgeStatus.FROM_TERMINAL
        elif distance[problem, one, two] > longest or np.isinf(distance[problem, one, two]):
            status[problem, one, two] = EdgeStatus.TOO_LONG
        else:
            status[problem, one, two] = EdgeStatus.KEPT


def trust_edges(edges: Edges, tried: Array | None, config: PlanningConfig) -> Array:
    """(B, N, N) less than 1 where the policy would set out with what it chose in that state before.

    A way that led back to a state is longer than it seemed from there. ``tried`` (B, N, A) counts the choices.
    """
    if tried is None or edges.action is None or config.revisit_penalty == 0:
        return np.ones(edges.distance.shape)
    times = np.take_along_axis(tried, edges.action, axis=2)  # (B, N, N)
    trust: Array = (1.0 - config.revisit_penalty) ** times
    return trust


def weigh_edges(distance: Array, usable: Array, trust: Array, config: PlanningConfig) -> Array:
    """(B, N, N) what edges count: as far as they are trusted, and less the longer they are; 0 where not ``usable``."""
    edge_length_penalty = 0.0 if "edges" in config.oracle_parts else config.edge_length_penalty  # the truth needs none
    weight = np.zeros(distance.shape)
    _weigh(*(column.reshape(-1) for column in (distance, usable, trust)), 1.0 - edge_length_penalty, weight.reshape(-1))
    return weight


@kernel
def _weigh(distance, usable, trust, left, weight):
    """Fill ``weight`` (E,) of edges (E,), where these are usable; of one with one step ``left`` is left."""
    for edge in range(len(weight)):
        if usable[edge]:
            weight[edge] = trust[edge] * left ** (distance[edge] * distance[edge])


def solve(
    vertices: Vertices, estimate: EstimateEdges, config: PlanningConfig, tried: Array | None = None
) -> ProxyProblem:
    """Annotate, prune and solve B problems together.

    ``tried`` (B, N, A) says how often the episode chose each action in the states that are vertices.
    """
    estimated = estimate(vertices)
    kept = keep_vertices(vertices, estimated, config)
    status = prune_edges(vertices, estimated, kept, config)
    usable = status == EdgeStatus.KEPT
    edges = estimated if isinstance(estimated, Edges) else estimated.where(usable)
    trust = trust_edges(edges, tried, config)
    weight = weigh_edges(edges.distance, usable, trust, config)
    values = value_iteration(weight * edges.reward, weight * edges.discount, config.sweeps)
    target = choose_target(values.action[:, CURRENT], usable[:, CURRENT], edges.distance[:, CURRENT])
    return ProxyProblem(vertices, edges, trust, kept, status, values, target)
