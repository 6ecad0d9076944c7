"""Distributional heads on pairs of partial states (App., "Estimators")."""

from functools import cache
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from skipper.nets.compiled.exact_types import MLP, has_exact_types, within
from skipper.nets.layers import mlp
from skipper.runtime.jit import kernel
from skipper.types import Array

FAVOUR = 6.0  # logits: of 16 bins the favoured one then holds 0.96
PLAIN_BATCH = 4096  # pairs that the plain modules estimate at a time, to limit memory


class PairwiseHead(nn.Module):
    """A histogram per action from a pair of partial states: logits (..., A, K) over ``support`` (K,).

    The first layer acts on the concatenated pair, so it splits into one projection per state: n states need n of them,
    not n * n. ``source`` and ``target`` are these projections, ``finish`` follows the ReLU of their sum.
    """

    support: Tensor

    def __init__(
        self,
        width: int,
        *,
        hidden: int,
        actions: int,
        support: Tensor,
        favoured: int | None = None,
        scaled: bool = False,
        contrast: bool = False,
    ) -> None:
        """``favoured`` is a bin that initially holds nearly all of the histogram.

        With ``contrast`` the head initially depends on the difference of the two states only.
        """
        super().__init__()
        self.actions = actions
        self.layers = mlp(2 * width, hidden, actions * len(support), scaled=scaled)
        self.width = width
        self.register_buffer("support", support)
        if contrast:
            weight = self.first_layer()[0].data
            weight[:, width:] = -weight[:, :width]
        if favoured is not None:
            bias = self.layers[-1].bias
            assert isinstance(bias, Tensor)
            bias.data.view(actions, len(support))[:, favoured] += FAVOUR

    def source(self, partial: Tensor) -> Tensor:
        """(..., D) to (..., hidden): the first layer's projection of the source, bias included."""
        weight, bias = self.first_layer()
        return functional.linear(partial, weight[:, : self.width], bias)

    def target(self, partial: Tensor) -> Tensor:
        """(..., D) to (..., hidden): the first layer's projection of the target."""
        return functional.linear(partial, self.first_layer()[0][:, self.width :])

    def join(self, source: Tensor, target: Tensor) -> Tensor:
        """Projections that broadcast with each other, to logits (..., A, K)."""
        return self.finish(functional.relu(source + target, inplace=True))

    def finish(self, hidden: Tensor) -> Tensor:
        """The layers after the first: (..., hidden) to logits (..., A, K)."""
        # In place: for thousands of pairs, writing them to memory takes longer than the arithmetic.
        hidden = functional.relu(self.layers[2](hidden), inplace=True)
        return self.layers[4](hidden).unflatten(-1, (self.actions, len(self.support)))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Partial states (B, D) and (B, D) to logits (B, A, K)."""
        return self.join(self.source(source), self.target(target))

    def expectation(self, logits: Tensor, support: Tensor | None = None) -> Tensor:
        """(..., K) logits to the mean of their histogram over ``support``, by default the head's own."""
        return logits.softmax(-1) @ (self.support if support is None else support.to(logits.device))

    def first_layer(self) -> tuple[Tensor, Tensor]:
        """Weights (hidden, 2 D), the source's first, and bias (hidden,)."""
        layer = self.layers[0]
        assert isinstance(layer, nn.Linear)
        return layer.weight, layer.bias


PAIRWISE_HEAD: dict[str, type[nn.Module]] = {"": PairwiseHead, **within("layers", MLP)}


@torch.no_grad()
def expect_pairs(head: PairwiseHead, sigma: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """(P, A) expectations of a head for pairs, given as indices into partial states (M, D)."""
    return head.expectation(_pair_logits(head, sigma, source, target))


@torch.no_grad()
def histograms_of_pairs(head: PairwiseHead, sigma: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """(P, A, K) histograms of a head for pairs, given as indices into partial states (M, D)."""
    return _pair_logits(head, sigma, source, target).softmax(-1)


def _pair_logits(head: PairwiseHead, sigma: Tensor, source: Tensor, target: Tensor) -> Tensor:
    if not has_exact_types(head, PAIRWISE_HEAD):
        logits: Tensor = head(sigma[source], sigma[target])
        return logits
    projections = head.source(sigma).numpy(), head.target(sigma).numpy()
    return head.finish(torch.from_numpy(join_pairs(*projections, source.numpy(), target.numpy())))


@kernel
def join_pairs(of_source, of_target, source, target):
    """(P, H) the first hidden layer of pairs (P,), from the projections (M, H) of their states."""
    hidden = np.empty((len(source), of_source.shape[1]), np.float32)
    for pair in range(len(source)):
        one, two = of_source[source[pair]], of_target[target[pair]]
        for unit in range(of_source.shape[1]):
            hidden[pair, unit] = max(one[unit] + two[unit], np.float32(0.0))
    return hidden


class Heads(NamedTuple):
    """The heads that annotate pairs of states."""

    value: PairwiseHead | None  # None where the policy takes the action of least distance
    distance: PairwiseHead
    reward: PairwiseHead | None  # None where plans need no rewards
    terminal: nn.Module  # partial states (M, D) to logits (M, 2)
    discounts: Tensor  # (K,) of distances


class PairEstimates(Protocol):
    """Estimates of many pairs of states, as means over V symmetric images of them.

    A state is projected once to features, which serve all pairs that it is part of.
    """

    @property
    def feature_shape(self) -> tuple[int, ...]:
        """Shape of the features of one state."""

    def project(self, partial: Array) -> tuple[Array, Array]:
        """Partial states (M, V, D) to features (M, *feature_shape), and whether they are terminal, (M,) bool."""

    def values(self, features: Array, source: Array, target: Array) -> Array:
        """(P, A) action values of the policy, for pairs given as indices (P,) into features.

        Without a head of values they are nearness: 1 for a distance of one step, evenly down to 0 for the longest.
        """

    def annotate(self, features: Array, source: Array, target: Array) -> tuple[Array, Array, Array]:
        """Greedy actions of the policy, and their distances and discounts, (P,) each."""

    def rewards(self, features: Array, source: Array, target: Array, action: Array) -> Array:
        """(P,) cumulative rewards of paths that begin with ``action`` (P,)."""


class PlainHeads:
    """Pair estimates from the modules themselves; features are the partial states."""

    def __init__(self, heads: Heads, names: Array, width: int) -> None:
        """``names`` (V, A) are those of actions in the symmetric images; partial states have ``width`` numbers."""
        self._device = heads.distance.support.device
        self._heads, self._names = heads, torch.from_numpy(names).to(self._device)
        self.feature_shape = len(names), width

    @torch.no_grad()
    def project(self, partial: Array) -> tuple[Array, Array]:
        """As in ``PairEstimates``."""
        logits: Tensor = self._heads.terminal(torch.from_numpy(partial).to(self._device))
        return partial, (logits.softmax(-1)[..., 1].mean(1) > 0.5).cpu().numpy()

    def values(self, features: Array, source: Array, target: Array) -> Array:
        """As in ``PairEstimates``."""
        return self._policy_values(features, source, target).cpu().numpy()

    def _policy_values(self, features: Array, source: Array, target: Array) -> Tensor:
        pairs, value, distance = (features, source, target), self._heads.value, self._heads.distance
        if value is None:
            return self._expect(distance, *pairs, nearness_support(len(distance.support)))
        return self._expect(value, *pairs)

    def annotate(self, features: Array, source: Array, target: Array) -> tuple[Array, Array, Array]:
        """As in ``PairEstimates``."""
        pairs, head = (features, source, target), self._heads.distance
        action = self._policy_values(*pairs).argmax(-1)
        distance = _take(self._expect(head, *pairs), action)
        discount = _take(self._expect(head, *pairs, self._heads.discounts), action)
        return action.cpu().numpy(), distance.cpu().numpy(), discount.cpu().numpy()

    def rewards(self, features: Array, source: Array, target: Array, action: Array) -> Array:
        """As in ``PairEstimates``."""
        assert self._heads.reward is not None
        estimates = self._expect(self._heads.reward, features, source, target)
        return _take(estimates, torch.from_numpy(action).to(self._device)).cpu().numpy()

    @torch.no_grad()
    def _expect(
        self, head: PairwiseHead, features: Array, source: Array, target: Array, support: Tensor | None = None
    ) -> Tensor:
        """(P, A) means over all images, by the names that actions have in the first."""
        partial, found = torch.from_numpy(features).to(self._device), []
        for pair in torch.from_numpy(np.stack([source, target], axis=1)).to(self._device).split(PLAIN_BATCH):
            one, two = partial[pair[:, 0]], partial[pair[:, 1]]  # (p, V, D)
            images = (head.expectation(head(one[:, v], two[:, v]), support) for v in range(len(self._names)))
            renamed = [image[:, names] for image, names in zip(images, self._names, strict=True)]
            found.append(torch.stack(renamed).mean(0))
        return torch.cat(found)


def _take(estimates: Tensor, action: Tensor) -> Tensor:
    """(P, A) and (P,) to the estimates of these actions, (P,)."""
    return estimates.gather(-1, action[:, None])[:, 0]


def unit_support(bins: int) -> Tensor:
    """Support of values and cumulative rewards: evenly from 0 to 1."""
    return torch.linspace(0.0, 1.0, bins)


def nearness_support(bins: int) -> Tensor:
    """Support of distances for which less is worth more: 1 for one step, evenly down to 0 for the longest."""
    return unit_support(bins).flip(0)


def distance_support(bins: int) -> Tensor:
    """Support of distances: 1 to ``bins`` steps, the last bin for all that is longer."""
    return torch.arange(1.0, bins + 1.0)


@cache
def discount_support(bins: int, discount: float, *, never: bool = False) -> Tensor:
    """Discounts of the distances: as the support of a distance histogram they give E[discount ** D].

    With ``never`` the last bin means that the target is never reached.
    """
    discounts = discount ** distance_support(bins)
    if never:
        discounts[-1] = 0.0
    return discounts
