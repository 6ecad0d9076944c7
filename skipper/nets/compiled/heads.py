"""Twin of the heads without gradients: estimates of many pairs in one compiled pass, some pairs at a time.

The projections of a state by the first layers, as source and as target, are computed once for all of its pairs.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from skipper.nets.compiled.exact_types import MLP, has_exact_types
from skipper.nets.heads import PAIRWISE_HEAD, Heads, PairwiseHead, nearness_support
from skipper.runtime.jit import kernel
from skipper.runtime.threads import run_parallel
from skipper.types import Array

BLOCK = 256  # pairs whose hidden layers stay in the processor's cache
_LOG2 = np.float32(np.log(2.0))
_LOWEST = np.float32(-64.0)  # lower exponents change no sum, and would give denormal numbers, which are slow


def supports(heads: Heads) -> bool:
    """Whether ``CompiledHeads`` computes the same functions as the heads."""
    pairwise = _pairwise(heads)
    if not (all(has_exact_types(head, PAIRWISE_HEAD) for head in pairwise) and has_exact_types(heads.terminal, MLP)):
        return False
    return len({(head.first_layer()[0].shape, head.actions) for head in pairwise}) == 1


def _pairwise(heads: Heads) -> list[PairwiseHead]:
    return [head for head in (heads.value, heads.distance, heads.reward) if head is not None]


class Dense(NamedTuple):
    """A linear layer, packed for products."""

    weight: Array  # (inputs, outputs)
    bias: Array  # (outputs,)


class Head(NamedTuple):
    """The layers after the first: H hidden units, A actions, K bins."""

    column: int  # of the head's projection of sources in the features of a state; that of targets is the next
    hidden: Dense  # H to H
    last: Dense  # H to A * K
    supports: Array  # (Q, K) over which means of its histograms are taken


class Pairs(NamedTuple):
    """P pairs of M states, in V images each."""

    features: Array  # (M, V, columns, H) projections of the states by the first layers of the heads
    source: Array  # (P,) indices of states
    target: Array  # (P,) indices of states
    names: Array  # (V, A) names of actions in the images


class CompiledHeads:
    """Pair estimates with the weights that the heads have at construction."""

    def __init__(self, heads: Heads, names: Array) -> None:
        """``names`` (V, A) are those of actions in the symmetric images."""
        self._names = np.ascontiguousarray(names, np.int64)
        self._pack(heads)

    @property
    def feature_shape(self) -> tuple[int, int, int]:
        """Images, columns (two for each head) and hidden units."""
        return len(self._names), 2 * self._count, len(self._distance.hidden.bias)

    @torch.no_grad()
    def _pack(self, heads: Heads) -> None:
        """Copy the weights into the layout that products need."""
        pairwise = _pairwise(heads)
        self._count = len(pairwise)

        def packed(head: PairwiseHead, *supports: Tensor) -> Head:
            hidden, last = _dense(head.layers[2]), _dense(head.layers[4])
            return Head(2 * pairwise.index(head), hidden, last, torch.stack(supports).numpy())

        value, distance, reward = heads.value, heads.distance, heads.reward
        self._distance = packed(distance, distance.support, heads.discounts)
        self._value = None if value is None else packed(value, value.support)
        self._policy = self._value or packed(distance, nearness_support(len(distance.support)))
        self._reward = None if reward is None else packed(reward, reward.support)
        assert isinstance(heads.terminal, nn.Sequential)
        self._terminal = tuple(_dense(heads.terminal[index]) for index in (0, 2, 4))
        firsts = [head.first_layer() for head in pairwise]
        halves = [half for weight, _ in firsts for half in weight.chunk(2, dim=1)]  # (H, D) each
        biases = [part for _, bias in firsts for part in (bias, torch.zeros_like(bias))]
        self._first = Dense(torch.cat(halves).T.contiguous().numpy(), torch.cat(biases).numpy())

    def project(self, partial: Array) -> tuple[Array, Array]:
        """Partial states (M, V, D) to features (M, *feature_shape), and whether they are terminal, (M,) bool."""
        features, terminal = np.empty((len(partial), *self.feature_shape), np.float32), np.empty(len(partial), np.bool_)

        def work(rows: slice) -> None:
            _project(partial[rows], self._first, self._terminal, features[rows], terminal[rows])

        run_parallel(work, len(partial), BLOCK)
        return features, terminal

    def values(self, features: Array, source: Array, target: Array) -> Array:
        """(P, A) action values of the policy, for pairs given as indices (P,) into features."""
        expected = np.empty((len(source), self._names.shape[1]), np.float32)

        def work(rows: slice) -> None:
            _values(Pairs(features, source[rows], target[rows], self._names), self._policy, expected[rows])

        run_parallel(work, len(source), BLOCK)
        return expected

    def annotate(self, features: Array, source: Array, target: Array) -> tuple[Array, Array, Array]:
        """Greedy actions of the policy, and their distances and discounts, (P,) each."""
        action = np.empty(len(source), np.int64)
        distance, discount = np.empty((2, len(source)), np.float32)

        def work(rows: slice) -> None:
            pairs, found = Pairs(features, source[rows], target[rows], self._names), (action, distance, discount)
            columns = tuple(column[rows] for column in found)
            if self._value is None:
                _annotate_nearest(pairs, self._distance, *columns)
            else:
                _annotate(pairs, self._value, self._distance, *columns)

        run_parallel(work, len(source), BLOCK)
        return action, distance, discount

    def rewards(self, features: Array, source: Array, target: Array, action: Array) -> Array:
        """(P,) cumulative rewards of paths that begin with ``action`` (P,)."""
        assert self._reward is not None
        reward, head = np.empty(len(source), np.float32), self._reward

        def work(rows: slice) -> None:
            pairs = Pairs(features, source[rows], target[rows], self._names)
            _rewards(pairs, head, action[rows], reward[rows])

        run_parallel(work, len(source), BLOCK)
        return reward


def _dense(layer: nn.Module) -> Dense:
    assert isinstance(layer, nn.Linear)
    return Dense(layer.weight.T.contiguous().numpy(), layer.bias.numpy().copy())


@kernel
def _apply(layer, inputs, outputs, rectified):
    """Fill ``outputs`` (R, outputs) with a layer's response to ``inputs`` (R, inputs), followed by ReLU if wanted."""
    lowest = np.float32(0.0 if rectified else -np.inf)
    np.dot(inputs, layer.weight, outputs)
    for row in range(len(inputs)):
        numbers = outputs[row]
        for unit in range(len(numbers)):
            numbers[unit] = max(numbers[unit] + layer.bias[unit], lowest)


@kernel
def _project(partial, first, terminal_layers, features, terminal):
    """Fill ``features`` (M, V, columns, H) and ``terminal`` (M,) of partial states (M, V, D)."""
    for begin in range(0, len(partial), BLOCK):
        rows = slice(begin, begin + BLOCK)
        _project_block(np.ascontiguousarray(partial[rows]), first, terminal_layers, features[rows], terminal[rows])


@kernel
def _project_block(partial, first, terminal_layers, features, terminal):
    """As ``_project``, with one product for each layer."""
    states, images, width = partial.shape
    rows = partial.reshape(states * images, width)
    _apply(first, rows, features.reshape(states * images, len(first.bias)), False)
    one = np.empty((len(rows), len(terminal_layers[0].bias)), np.float32)
    two, logits = np.empty_like(one), np.empty((len(rows), 2), np.float32)
    _apply(terminal_layers[0], rows, one, True)
    _apply(terminal_layers[1], one, two, True)
    _apply(terminal_layers[2], two, logits, False)
    for state in range(states):
        probability = 0.0
        for row in range(state * images, (state + 1) * images):
            probability += 1.0 / (1.0 + np.exp(logits[row, 0] - logits[row, 1]))
        terminal[state] = probability > 0.5 * images


@kernel
def _values(pairs, value, expected):
    """Fill ``expected`` (P, A) with the policy's action values."""
    for begin in range(0, len(expected), BLOCK):
        block = expected[begin : begin + BLOCK]
        means = _expect(pairs, value, begin, len(block))
        for pair in range(len(block)):
            for action in range(len(means)):
                block[pair, action] = means[action, 0, pair]


@kernel
def _annotate(pairs, value_head, distance_head, action, distance, discount):
    """Fill the last three, (P,) each: greedy actions, and their means by the head of distances."""
    for begin in range(0, len(action), BLOCK):
        chosen = action[begin : begin + BLOCK]
        expected = _expect(pairs, value_head, begin, len(chosen))
        for pair in range(len(chosen)):
            chosen[pair] = 0
            for other in range(1, len(expected)):
                if expected[other, 0, pair] > expected[chosen[pair], 0, pair]:
                    chosen[pair] = other
        means = _expect_chosen(pairs, distance_head, begin, chosen)
        distance[begin : begin + BLOCK], discount[begin : begin + BLOCK] = means[0], means[1]


@kernel
def _annotate_nearest(pairs, head, action, distance, discount):
    """Fill the last three, (P,) each: actions of least distance, and their means by the head of distances."""
    for begin in range(0, len(action), BLOCK):
        chosen = action[begin : begin + BLOCK]
        means = _expect(pairs, head, begin, len(chosen))
        for pair in range(len(chosen)):
            best = 0
            for other in range(1, len(means)):
                if means[other, 0, pair] < means[best, 0, pair]:
                    best = other
            chosen[pair], distance[begin + pair], discount[begin + pair] = (
                best,
                means[best, 0, pair],
                means[best, 1, pair],
            )


@kernel
def _rewards(pairs, head, action, reward):
    """Fill ``reward`` (P,) with the means of paths that begin with ``action`` (P,)."""
    for begin in range(0, len(action), BLOCK):
        reward[begin : begin + BLOCK] = _expect_chosen(pairs, head, begin, action[begin : begin + BLOCK])[0]


@kernel
def _expect(pairs, head, begin, number):
    """(A, Q, number) means of a head over its supports for all actions, of ``number`` pairs from ``begin`` on."""
    images, actions = pairs.names.shape
    expected = np.zeros((actions, len(head.supports), number), np.float32)
    for image in range(images):
        logits = _logits(pairs, head, image, begin, number)
        for action in range(actions):
            _add_means(logits[pairs.names[image, action]], head.supports, images, expected[action])
    return expected


@kernel
def _expect_chosen(pairs, head, begin, chosen):
    """(Q, p) means of a head over its supports, of pairs from ``begin`` on and their actions ``chosen`` (p,)."""
    images, bins = len(pairs.names), head.supports.shape[1]
    means, rows = np.zeros((len(head.supports), len(chosen)), np.float32), np.empty((bins, len(chosen)), np.float32)
    for image in range(images):
        logits = _logits(pairs, head, image, begin, len(chosen))
        for atom in range(bins):
            for pair in range(len(chosen)):
                rows[atom, pair] = logits[pairs.names[image, chosen[pair]], atom, pair]
        _add_means(rows, head.supports, images, means)
    return means


@kernel
def _logits(pairs, head, image, begin, number):
    """(A, K, number) of ``number`` pairs from ``begin`` on, in one image; pairs come last, for vectorised loops."""
    first = np.empty((number, len(head.hidden.bias)), np.float32)
    second, logits = np.empty_like(first), np.empty((len(head.last.bias), number), np.float32)
    for pair in range(number):
        source = pairs.features[pairs.source[begin + pair], image, head.column]
        target = pairs.features[pairs.target[begin + pair], image, head.column + 1]
        joined = first[pair]
        for unit in range(len(source)):
            joined[unit] = max(source[unit] + target[unit], np.float32(0.0))
    _apply(head.hidden, first, second, True)
    np.dot(head.last.weight.T, second.T, logits)
    for atom in range(len(logits)):
        row, bias = logits[atom], head.last.bias[atom]
        for pair in range(number):
            row[pair] += bias
    return logits.reshape(pairs.names.shape[1], head.supports.shape[1], number)


@kernel
def _add_means(logits, supports, images, means):
    """Add one image's share to ``means`` (Q, P), the means of histograms over Q ``supports`` (Q, K).

    Overwrites ``logits`` (K, P).
    """
    highest, total = logits[0].copy(), np.zeros(logits.shape[1], np.float32)
    for row in logits:
        for pair in range(len(row)):
            highest[pair] = max(highest[pair], row[pair])
    for row in logits:
        for pair in range(len(row)):
            row[pair] -= highest[pair]
    _exponentials(logits.reshape(-1))
    for row in logits:
        for pair in range(len(row)):
            total[pair] += row[pair]
    for pair in range(len(total)):
        total[pair] = np.float32(1.0) / (total[pair] * np.float32(images))
    for support in range(len(supports)):
        for atom in range(len(logits)):
            row, value, mean = logits[atom], supports[support, atom], means[support]
            for pair in range(len(row)):
                mean[pair] += row[pair] * value * total[pair]


@kernel
def _exponentials(numbers):
    """Exponentials of numbers <= 0, in place; the compiler vectorises this loop, but not np.exp."""
    power = np.empty(len(numbers), np.int32)
    for index in range(len(numbers)):
        number = max(numbers[index], _LOWEST)
        halvings = np.int32(number / _LOG2 - np.float32(0.5))  # exp(x) = 2 ** halvings * exp(rest), |rest| < 0.35
        rest = number - np.float32(halvings) * _LOG2
        series = np.float32(1 / 5040)
        for factor in (1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0, 1.0):
            series = series * rest + np.float32(factor)
        numbers[index] = series
        power[index] = (halvings + np.int32(127)) << np.int32(23)  # these bits are 2 ** halvings
    scale = power.view(np.float32)
    for index in range(len(numbers)):
        numbers[index] *= scale[index]
