"""Edges of proxy problems: learned estimates, or ground truth in place of some of them (Sec. 3.3)."""

from skipper.agents.skipper.config import SkipperConfig
from skipper.nets.frozen import FrozenNetwork
from skipper.types import CURRENT, Array, Edges, EnvironmentSpec, LazyEdges, Vertices, oracle_of


class EdgeSource:
    """Annotates pairs of vertices with distance, discount, reward and the policy's first action."""

    def __init__(self, frozen: FrozenNetwork, config: SkipperConfig, spec: EnvironmentSpec) -> None:
        self._frozen, self._config, self._spec = frozen, config, spec
        self._oracle_parts = {"edges", "rewards", "terminal"} & set(config.planning.oracle_parts)

    def estimate(self, vertices: Vertices, environments: Array | None = None) -> Edges | LazyEdges:
        """The edges that a plan needs; rewards may be estimated after pruning.

        ``environments`` (B,) are the numbers of the environments, whose earlier estimates are used again.
        """
        edges = self._estimate(vertices, environments)
        # An agent that acts is not in a terminal state, whatever the terminal head says (authors' code).
        terminal = edges.terminal.copy()
        terminal[:, CURRENT] = False
        return edges._replace(terminal=terminal)

    def complete(self, vertices: Vertices) -> Edges:
        """All estimates for all pairs of vertices, which need not belong to one plan."""
        edges = self._estimate(vertices)
        return edges if isinstance(edges, Edges) else edges.where(all_pairs(vertices))

    def _estimate(self, vertices: Vertices, environments: Array | None = None) -> Edges | LazyEdges:
        if "edges" in self._oracle_parts:
            return self._true_edges(vertices, environments)
        learned = self._frozen.edges(vertices, environments)
        if not self._oracle_parts:
            return learned
        # Put ground truth in the place of single parts.
        true, edges = self._truth(vertices), learned.where(all_pairs(vertices))
        return edges._replace(
            reward=true.reward if "rewards" in self._oracle_parts else edges.reward,
            terminal=true.terminal if "terminal" in self._oracle_parts else edges.terminal,
        )

    def _true_edges(self, vertices: Vertices, environments: Array | None) -> Edges:
        """Ground truth; the revisit penalty needs the first actions of the policy, as long as that is learned."""
        true, parts = self._truth(vertices), self._config.planning.oracle_parts
        if self._config.decision.revisit_penalty == 0 or "policy" in parts:
            return true
        return true._replace(action=self._frozen.edges(vertices, environments).action)

    def _truth(self, vertices: Vertices) -> Edges:
        return Edges(*oracle_of(self._spec).edges(vertices.observation, self._config.learning.task_discount))


def all_pairs(vertices: Vertices) -> Array:
    """(B, N, N) bool, pairs of present vertices."""
    both: Array = vertices.present[:, :, None] & vertices.present[:, None]
    return both
