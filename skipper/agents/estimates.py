"""What plans ask the estimators: about states and pairs of states, in one or in several symmetric images of them.

A network that learned from symmetric images of its tasks still answers a little differently in each. Where several are
asked, the mean of what they say counts, and errors that they do not share shrink.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from skipper.agents.ballot import Ballot
from skipper.agents.base import observations_tensor
from skipper.agents.estimators import EstimatorNetwork
from skipper.nets.heads import PairwiseHead, discount_support, join_pairs, of_action
from skipper.planning.proxy import LazyEdges, Vertices
from skipper.types import Array

CHUNK = 4096  # pairs that are estimated together: more would not stay in the processor's cache


class Estimates:
    """The estimators of a network, as an oracle whose answers are means over V images."""

    def __init__(
        self,
        network: EstimatorNetwork,
        discount: float,
        partial: Callable[[Tensor], Tensor] | None = None,
        ballot: Ballot | None = None,
    ) -> None:
        """``partial`` may be a table of the network's partial states; without a ``ballot`` only one image is asked."""
        self.network, self._discount, self._partial = network, discount, partial or network.partial
        self._ballot = ballot or Ballot(None, 1)
        self.votes, self._chunk = self._ballot.votes, CHUNK // self._ballot.votes

    @property
    def width(self) -> int:
        """Numbers in a partial state of one image."""
        return self.network.value.width

    @torch.no_grad()
    def encode(self, states: Array) -> Tensor:
        """(M, W, H, C) to partial states of the images, (M, V, D)."""
        sigma = self._partial(observations_tensor(self._ballot.images(states)))
        return sigma.unflatten(0, (self.votes, len(states))).transpose(0, 1)

    @torch.no_grad()
    def terminal(self, sigma: Tensor) -> Array:
        """(M,) bool, whether states (M, V, D) end an episode."""
        return (self.network.terminal(sigma).softmax(-1).mean(1).argmax(-1) == 1).numpy()

    @torch.no_grad()
    def values(self, source: Tensor, target: Tensor) -> Array:
        """(P, A) what the policy expects of its actions on the way between states (P, V, D) each."""
        head = self.network.value
        found = (head.expectation(head(source[:, image], target[:, image])) for image in range(self.votes))
        return _mean([self._ballot.renamed(each, image) for image, each in enumerate(found)]).numpy()

    @torch.no_grad()
    def ways(self, sigma: Tensor, source: Array, target: Array) -> tuple[Array, Array, Array]:
        """Greedy actions, distances and discounts (P,) of pairs, given as indices (P,) into states (M, V, D)."""
        value, distance = self.network.value, self.network.distance
        gamma = discount_support(len(distance.support), self._discount)
        parts = []
        logits = (self._logits(head, sigma, source, target) for head in (value, distance))
        for of_value, of_distance in zip(*logits, strict=True):
            action = _mean([value.expectation(image) for image in of_value]).argmax(-1)
            histogram = _mean([of_action(image, action).softmax(-1) for image in of_distance])
            parts.append((action, histogram @ distance.support, histogram @ gamma))
        actions, steps, discounts = (torch.cat(column).numpy() for column in zip(*parts, strict=True))
        return actions, steps, discounts

    @torch.no_grad()
    def rewards(self, sigma: Tensor, source: Array, target: Array, action: Array) -> Array:
        """(P,) what is collected by setting out with ``action`` (P,), of pairs as in ``ways``."""
        head, chosen = self.network.reward, torch.from_numpy(action).split(self._chunk)
        logits = zip(self._logits(head, sigma, source, target), chosen, strict=True)
        found = [_mean([head.expectation(of_action(image, some)) for image in images]) for images, some in logits]
        return torch.cat(found).numpy()

    def _logits(self, head: PairwiseHead, sigma: Tensor, source: Array, target: Array) -> Iterator[list[Tensor]]:
        """Logits (p, A, K) of pairs in every image, some pairs at a time."""
        ends = [(head.source(image).numpy(), head.target(image).numpy()) for image in sigma.unbind(1)]
        for begin in range(0, len(source), self._chunk):
            pairs = source[begin : begin + self._chunk], target[begin : begin + self._chunk]
            hidden = (torch.from_numpy(join_pairs(leave, reach, *pairs)) for leave, reach in ends)
            yield [self._ballot.renamed(head.finish(each), image) for image, each in enumerate(hidden)]


def _mean(images: list[Tensor]) -> Tensor:
    return images[0] if len(images) == 1 else torch.stack(images).mean(0)


def learned_edges(estimates: Estimates, vertices: Vertices) -> LazyEdges:
    """What the estimators say of all pairs of vertices, under the checkpoint policy's greedy actions.

    Vertices that are merged with others have no edges. Rewards wait until it is known which are needed.
    """
    B, N = vertices.present.shape  # noqa: N806
    sigma = estimates.encode(vertices.observation.reshape(B * N, *vertices.observation.shape[2:]))
    both = vertices.present[:, :, None] & vertices.present[:, None]
    distance, discount = np.full(both.shape, np.inf), np.zeros(both.shape)
    action = np.zeros(both.shape, np.int64)
    action[both], distance[both], discount[both] = estimates.ways(sigma, *_ends(both))

    def reward(usable: Array) -> Array:
        found, asked = np.zeros(both.shape), usable & both
        if asked.any():
            found[asked] = estimates.rewards(sigma, *_ends(asked), action[asked])
        return found

    return LazyEdges(distance, discount, estimates.terminal(sigma).reshape(B, N), action, reward)


def _ends(pairs: Array) -> tuple[Array, Array]:
    """Pairs of vertices (B, N, N) bool to where they lead from and to, (P,) each, among all B * N."""
    problem, source, target = np.nonzero(pairs)
    return problem * pairs.shape[1] + source, problem * pairs.shape[1] + target
