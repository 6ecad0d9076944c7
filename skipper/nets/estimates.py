"""What plans ask the estimators: about states and pairs of states, in one or in several symmetric images of them.

A network that learned from symmetric images of its tasks still answers a little differently in each. Where several are
asked, the mean of what they say counts, and errors that they do not share shrink.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from skipper.nets.compiled.heads import StillHeads
from skipper.nets.ensemble import SymmetryEnsemble
from skipper.nets.estimators import EstimatorNetwork
from skipper.nets.layers import observations_tensor
from skipper.planning.proxy import LazyEdges, Vertices
from skipper.types import Array


class Estimates:
    """The estimators of a network, as an oracle whose answers are means over V images."""

    def __init__(
        self,
        network: EstimatorNetwork,
        discount: float,
        partial: Callable[[Tensor], Tensor] | None = None,
        ensemble: SymmetryEnsemble | None = None,
    ) -> None:
        """``partial`` may be a table of the network's partial states; without a ``ensemble`` only one image is asked."""
        self.network, self._partial = network, partial or network.partial
        self._ensemble = ensemble or SymmetryEnsemble(None, 1)
        pairwise, names = (network.value, network.distance, network.reward), self._ensemble.names(network.value.actions)
        self.heads = StillHeads(pairwise, network.terminal, discount, names)

    @torch.no_grad()
    def meet(self, states: Array) -> tuple[Array, Array]:
        """What heads are told of states (M, W, H, C), in all images, and whether these end an episode, (M,) bool."""
        sigma = self._partial(observations_tensor(self._ensemble.images(states))).numpy()
        return self.heads.meet(sigma.reshape(self._ensemble.ensemble_size, len(states), sigma.shape[1]).swapaxes(0, 1))


def learned_edges(estimates: Estimates, vertices: Vertices) -> LazyEdges:
    """What the estimators say of all pairs of vertices, under the checkpoint policy's greedy actions.

    Vertices that are merged with others have no edges. Rewards wait until it is known which are needed.
    """
    B, N = vertices.present.shape  # noqa: N806
    ends, terminal = estimates.meet(vertices.observation.reshape(B * N, *vertices.observation.shape[2:]))
    both = vertices.present[:, :, None] & vertices.present[:, None]
    distance, discount = np.full(both.shape, np.inf), np.zeros(both.shape)
    action = np.zeros(both.shape, np.int64)
    action[both], distance[both], discount[both] = estimates.heads.ways(ends, *_ends(both))

    def reward(usable: Array) -> Array:
        found, asked = np.zeros(both.shape), usable & both
        if asked.any():
            found[asked] = estimates.heads.rewards(ends, *_ends(asked), action[asked])
        return found

    return LazyEdges(distance, discount, terminal.reshape(B, N), action, reward)


def _ends(pairs: Array) -> tuple[Array, Array]:
    """Pairs of vertices (B, N, N) bool to where they lead from and to, (P,) each, among all B * N."""
    problem, source, target = np.nonzero(pairs)
    return problem * pairs.shape[1] + source, problem * pairs.shape[1] + target
