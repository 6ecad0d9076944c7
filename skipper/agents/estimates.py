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

Ends = list[tuple[Array, Array]]  # of V images: what M states add to a head's hidden layer as sources, and as targets


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
    def ways(self, sigma: Tensor, source: Array, target: Array, longest: float = np.inf) -> tuple[Array, Array, Array]:
        """Greedy actions, distances and discounts (P,) of pairs, given as indices (P,) into states (M, V, D).

        Where all actions lead farther than ``longest``, nobody is asked which is greedy: the nearest stands for it.
        """
        value, distance = self.network.value, self.network.distance
        gamma = discount_support(len(distance.support), self._discount)
        ends, value_ends = self._ends(distance, sigma), self._ends(value, sigma)
        parts = []
        for pairs in self._chunks(source, target):
            histogram = _mean([image.softmax(-1) for image in self._logits(distance, ends, pairs)])  # (p, A, K)
            steps = histogram @ distance.support
            action = steps.argmin(-1)
            near = (steps.amin(-1) <= longest).numpy()
            if near.any():
                some = self._logits(value, value_ends, tuple(end[near] for end in pairs))
                action[near] = _mean([value.expectation(image) for image in some]).argmax(-1)
            chosen = of_action(histogram, action)
            parts.append((action, of_action(steps[..., None], action)[:, 0], chosen @ gamma))
        actions, distances, discounts = (torch.cat(column).numpy() for column in zip(*parts, strict=True))
        return actions, distances, discounts

    @torch.no_grad()
    def rewards(self, sigma: Tensor, source: Array, target: Array, action: Array) -> Array:
        """(P,) what is collected by setting out with ``action`` (P,), of pairs as in ``ways``."""
        head, found = self.network.reward, []
        ends, chosen = self._ends(head, sigma), torch.from_numpy(action).split(self._chunk)
        for pairs, some in zip(self._chunks(source, target), chosen, strict=True):
            images = self._logits(head, ends, pairs)
            found.append(_mean([head.expectation(of_action(image, some)) for image in images]))
        return torch.cat(found).numpy()

    def _chunks(self, source: Array, target: Array) -> Iterator[tuple[Array, Array]]:
        """Some pairs at a time."""
        for begin in range(0, len(source), self._chunk):
            yield source[begin : begin + self._chunk], target[begin : begin + self._chunk]

    def _ends(self, head: PairwiseHead, sigma: Tensor) -> Ends:
        return [(head.source(image).numpy(), head.target(image).numpy()) for image in sigma.unbind(1)]

    def _logits(self, head: PairwiseHead, ends: Ends, pairs: tuple[Array, ...]) -> list[Tensor]:
        """Logits (p, A, K) of pairs in every image."""
        hidden = (torch.from_numpy(join_pairs(leave, reach, *pairs)) for leave, reach in ends)
        return [self._ballot.renamed(head.finish(each), image) for image, each in enumerate(hidden)]


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
