"""Heads of a network that stands still, asked about many pairs of states: one compiled pass over some pairs at a time.

What a state adds to the first layer of a head, when it is left or aimed at, is computed once for all of its pairs.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from skipper.nets.heads import PairwiseHead, discount_support
from skipper.nets.layers import WeightsWatch
from skipper.runtime.jit import kernel
from skipper.runtime.threads import shared
from skipper.types import Array

CHUNK = 256  # pairs whose hidden layers stay in the processor's cache
_LOG2 = np.float32(np.log(2.0))
_LOWEST = np.float32(-64.0)  # exponentials of less are no different, and with denormal numbers processors are slow


class Dense(NamedTuple):
    """A linear layer, as products want it."""

    weight: Array  # (inputs, outputs)
    bias: Array  # (outputs,)


class Head(NamedTuple):
    """What follows the first layer: H hidden units, A actions, K bins."""

    column: int  # of the head's two among the columns of a state, the one for leaving it; the next is for aiming at it
    hidden: Dense  # H to H
    last: Dense  # H to A * K
    supports: Array  # (Q, K) over which means of its histograms are wanted


class Question(NamedTuple):
    """P pairs of M states, in V images each."""

    ends: Array  # (M, V, columns, H) what the states add to the first layers of the heads
    source: Array  # (P,) which of the states is left
    target: Array  # (P,) and which is aimed at
    names: Array  # (V, A) what actions are called in the images


class StillHeads:
    """All heads without gradients, and the mean of what they say where there are several images of states."""

    def __init__(
        self,
        pairwise: tuple[PairwiseHead, PairwiseHead, PairwiseHead],
        terminal: nn.Sequential,
        discount: float,
        names: Array,
    ) -> None:
        """Of value, distance and reward, and of the end; ``names`` (V, A) say what actions are called in the images."""
        self._pairwise, self._terminal, self._names = pairwise, terminal, np.ascontiguousarray(names, np.int64)
        self._discount = discount
        self._watch = WeightsWatch(nn.ModuleList([*pairwise, terminal]))
        self._lay_out()

    @property
    def end_shape(self) -> tuple[int, int, int]:
        """Of the ends of one state: images, columns (two for each head) and hidden units."""
        return len(self._names), 2 * len(self._pairwise), len(self._heads[0].hidden.bias)

    @torch.no_grad()
    def _lay_out(self) -> None:
        """Put the weights as they are where products want them."""
        value, distance, reward = (head.support for head in self._pairwise)
        discounts = discount_support(len(distance), self._discount)
        supports = value[None], torch.stack([distance, discounts]), reward[None]
        self._heads = [
            Head(2 * place, _dense(head.layers[2]), _dense(head.layers[4]), wanted.numpy())
            for place, (head, wanted) in enumerate(zip(self._pairwise, supports, strict=True))
        ]
        self._ending = tuple(_dense(self._terminal[place]) for place in (0, 2, 4))
        firsts = [head.first_layer() for head in self._pairwise]
        halves = [half for weight, _ in firsts for half in weight.chunk(2, dim=1)]  # (H, D) each
        biases = [part for _, bias in firsts for part in (bias, torch.zeros_like(bias))]
        self._first = Dense(torch.cat(halves).T.contiguous().numpy(), torch.cat(biases).numpy())
        self._watch.note()

    def meet(self, partial: Array) -> tuple[Array, Array]:
        """Partial states (M, V, D) to their ends, (M, V, columns, H), and whether they are the end, (M,) bool.

        Ends are what states add to first layers when they are left or aimed at; for the weights as they are now.
        """
        if self._watch.changed():
            self._lay_out()
        ends, terminal = np.empty((len(partial), *self.end_shape), np.float32), np.empty(len(partial), np.bool_)

        def work(some: slice) -> None:
            _meet(partial[some], self._first, self._ending, ends[some], terminal[some])

        shared(work, len(partial), CHUNK)
        return ends, terminal

    def values(self, ends: Array, source: Array, target: Array) -> Array:
        """(P, A) what the policy expects of its actions, of pairs (P,) of the states at ``ends``."""
        expected = np.empty((len(source), self._names.shape[1]), np.float32)

        def work(some: slice) -> None:
            _values(Question(ends, source[some], target[some], self._names), self._heads[0], expected[some])

        shared(work, len(source), CHUNK)
        return expected

    def ways(self, ends: Array, source: Array, target: Array) -> tuple[Array, Array, Array]:
        """Greedy actions of the policy, distances and discounts, (P,) each."""
        action = np.empty(len(source), np.int64)
        steps, discount = np.empty((2, len(source)), np.float32)
        value, distance, _ = self._heads

        def work(some: slice) -> None:
            question = Question(ends, source[some], target[some], self._names)
            _ways(question, value, distance, action[some], steps[some], discount[some])

        shared(work, len(source), CHUNK)
        return action, steps, discount

    def rewards(self, ends: Array, source: Array, target: Array, action: Array) -> Array:
        """(P,) what is collected by setting out with ``action`` (P,)."""
        reward = np.empty(len(source), np.float32)

        def work(some: slice) -> None:
            question = Question(ends, source[some], target[some], self._names)
            _rewards(question, self._heads[2], action[some], reward[some])

        shared(work, len(source), CHUNK)
        return reward


def _dense(layer: nn.Module) -> Dense:
    assert isinstance(layer, nn.Linear)
    return Dense(layer.weight.T.contiguous().numpy(), layer.bias.numpy().copy())


@kernel
def _apply(layer, rows, found, rectified):
    """Fill ``found`` (R, outputs) with what a layer makes of ``rows`` (R, inputs), negative numbers cut if wanted."""
    lowest = np.float32(0.0 if rectified else -np.inf)
    np.dot(rows, layer.weight, found)
    for row in range(len(rows)):
        numbers = found[row]
        for place in range(len(numbers)):
            numbers[place] = max(numbers[place] + layer.bias[place], lowest)


@kernel
def _meet(partial, first, ending, ends, terminal):
    """Fill ``ends`` (M, V, columns, H) and ``terminal`` (M,) with what is known of partial states (M, V, D)."""
    for begin in range(0, len(partial), CHUNK):
        some = slice(begin, begin + CHUNK)
        _meet_some(np.ascontiguousarray(partial[some]), first, ending, ends[some], terminal[some])


@kernel
def _meet_some(partial, first, ending, ends, terminal):
    """As ``_meet``, in one product for each layer."""
    states, images, width = partial.shape
    rows = partial.reshape(states * images, width)
    _apply(first, rows, ends.reshape(states * images, len(first.bias)), False)
    one = np.empty((len(rows), len(ending[0].bias)), np.float32)
    two, logits = np.empty_like(one), np.empty((len(rows), 2), np.float32)
    _apply(ending[0], rows, one, True)
    _apply(ending[1], one, two, True)
    _apply(ending[2], two, logits, False)
    for state in range(states):
        share = 0.0
        for row in range(state * images, (state + 1) * images):
            share += 1.0 / (1.0 + np.exp(logits[row, 0] - logits[row, 1]))
        terminal[state] = share > 0.5 * images


@kernel
def _values(question, value, expected):
    """Fill ``expected`` (P, A), what the policy expects of its actions."""
    for begin in range(0, len(expected), CHUNK):
        some = expected[begin : begin + CHUNK]
        means = _expect(question, value, begin, len(some))
        for pair in range(len(some)):
            for each in range(len(means)):
                some[pair, each] = means[each, pair]


@kernel
def _ways(question, value, distance, action, steps, discount):
    """Fill the last three, (P,) each: greedy actions, and the means that the head of distances has of them."""
    for begin in range(0, len(action), CHUNK):
        chosen = action[begin : begin + CHUNK]
        expected = _expect(question, value, begin, len(chosen))
        for pair in range(len(chosen)):
            chosen[pair] = 0
            for each in range(1, len(expected)):
                if expected[each, pair] > expected[chosen[pair], pair]:
                    chosen[pair] = each
        means = _ask(question, distance, begin, chosen)
        steps[begin : begin + CHUNK], discount[begin : begin + CHUNK] = means[0], means[1]


@kernel
def _rewards(question, head, action, reward):
    """Fill ``reward`` (P,), the mean of what is collected by setting out with ``action`` (P,)."""
    for begin in range(0, len(action), CHUNK):
        reward[begin : begin + CHUNK] = _ask(question, head, begin, action[begin : begin + CHUNK])[0]


@kernel
def _expect(question, head, begin, number):
    """(A, number) what a head expects of all actions, of pairs from ``begin`` on."""
    images, actions = question.names.shape
    expected = np.zeros((actions, number), np.float32)
    for image in range(images):
        logits = _logits(question, head, image, begin, number)
        for each in range(actions):
            _add_means(logits[question.names[image, each]], head.supports, images, expected[each : each + 1])
    return expected


@kernel
def _ask(question, head, begin, chosen):
    """(Q, p) means of the head's histograms, of pairs from ``begin`` on and of the actions ``chosen`` (p,)."""
    images, bins = len(question.names), head.supports.shape[1]
    means, rows = np.zeros((len(head.supports), len(chosen)), np.float32), np.empty((bins, len(chosen)), np.float32)
    for image in range(images):
        logits = _logits(question, head, image, begin, len(chosen))
        for place in range(bins):
            for pair in range(len(chosen)):
                rows[place, pair] = logits[question.names[image, chosen[pair]], place, pair]
        _add_means(rows, head.supports, images, means)
    return means


@kernel
def _logits(question, head, image, begin, number):
    """(A, K, number) of ``number`` pairs from ``begin`` on, in one of the images.

    Pairs come last, so that what follows is done with many of them at once.
    """
    first = np.empty((number, len(head.hidden.bias)), np.float32)
    second, logits = np.empty_like(first), np.empty((len(head.last.bias), number), np.float32)
    for pair in range(number):
        leave = question.ends[question.source[begin + pair], image, head.column]
        reach = question.ends[question.target[begin + pair], image, head.column + 1]
        joined = first[pair]
        for unit in range(len(leave)):
            joined[unit] = max(leave[unit] + reach[unit], np.float32(0.0))
    _apply(head.hidden, first, second, True)
    np.dot(head.last.weight.T, second.T, logits)
    for place in range(len(logits)):
        row, bias = logits[place], head.last.bias[place]
        for pair in range(number):
            row[pair] += bias
    return logits.reshape(question.names.shape[1], head.supports.shape[1], number)


@kernel
def _add_means(logits, supports, images, means):
    """Add to ``means`` (Q, P) one image's share: the means of histograms over Q ``supports`` (Q, K).

    ``logits`` (K, P) are changed.
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
    for each in range(len(supports)):
        for place in range(len(logits)):
            row, value, mean = logits[place], supports[each, place], means[each]
            for pair in range(len(row)):
                mean[pair] += row[pair] * value * total[pair]


@kernel
def _exponentials(numbers):
    """Of numbers that are not positive, in place; compiled to eight or sixteen at a time, which np.exp is not."""
    power = np.empty(len(numbers), np.int32)
    for place in range(len(numbers)):
        number = max(numbers[place], _LOWEST)
        halvings = np.int32(number / _LOG2 - np.float32(0.5))  # exp(x) = 2 ** halvings * exp(rest), |rest| < 0.35
        rest = number - np.float32(halvings) * _LOG2
        series = np.float32(1 / 5040)
        for factor in (1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0, 1.0):
            series = series * rest + np.float32(factor)
        numbers[place] = series
        power[place] = (halvings + np.int32(127)) << np.int32(23)  # these bits are 2 ** halvings
    scale = power.view(np.float32)
    for place in range(len(numbers)):
        numbers[place] *= scale[place]
