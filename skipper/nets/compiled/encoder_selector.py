"""Partial states of a network that stands still: encoder and selector in one compiled pass, a few states at a time.

What every word gives to the first convolution is known, so that is looking up and adding; the other two are products
of matrices that stay in the cache. For a single state, most of the time of the library's layers is not arithmetic.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from skipper.nets.layers import WeightsWatch
from skipper.nets.partial_states import PartialStates
from skipper.nets.selector import LocalFieldSelector
from skipper.runtime.jit import kernel
from skipper.runtime.threads import shared
from skipper.types import Array

EPSILON = np.float32(1e-5)  # of the normalisations
TOGETHER = 8  # states whose fields stay in the processor's cache
SPLIT = 256  # states that the library encodes at a time, where it does


class Layers(NamedTuple):
    """Weights as the products want them: C channels, D numbers in a partial state, K cells in a field."""

    given: Array  # (V + 1, 9, 2 C) what words add to the first convolution in the cells around, and nothing outside
    bias: Array  # (2 C,)
    narrowed: Array  # (2 C, 9 C) what the first convolution adds to the second, in the cells around
    word: Array  # (V, C) what every word adds to its cell beside that
    fields: Array  # (K C, D)
    field_bias: Array  # (D,)
    attention: Array  # (D,) the score of a normalised field is its product with this
    value: Array  # (D, D)
    value_bias: Array  # (D,)
    gain: Array  # (D,) of the last normalisation
    offset: Array  # (D,) likewise


class Sizes(NamedTuple):
    """Of the grid, of a field, and how many of these are selected."""

    width: int
    height: int
    field_width: int
    field_height: int
    top: int


class StillPartialStates:
    """The same function as ``PartialStates``, without gradients."""

    def __init__(self, network: PartialStates) -> None:
        self._network, self._watch = network, WeightsWatch(network)
        self._embed = network.encode.embed
        # Without one there are no fields to save time with.
        self._select = network.select if isinstance(network.select, LocalFieldSelector) else None
        self._layers: Layers | None = None  # of the weights as they are

    @torch.no_grad()
    def __call__(self, observation: Tensor) -> Tensor:
        """(M, W, H, C) integers to sigma(s), (M, D)."""
        if self._select is None:
            return torch.cat([self._network(some) for some in observation.split(SPLIT)])
        if self._layers is None or self._watch.changed():
            self._layers = _lay_out(self._network, self._select)
            self._watch.note()
        words, layers, sizes = self._embed.places(observation.numpy()), self._layers, self._sizes(observation)
        found = np.empty((len(words), len(layers.attention)), np.float32)
        shared(lambda some: _partial_states(words[some], layers, sizes, found[some]), len(words), TOGETHER)
        return torch.from_numpy(found)

    def _sizes(self, observation: Tensor) -> Sizes:
        assert self._select is not None
        width, height = observation.shape[1:3]
        return Sizes(width, height, *self._select.kernel, self._select.top)


def _lay_out(network: PartialStates, select: LocalFieldSelector) -> Layers:
    """Weights into which the first normalisation is folded but for its scale, and of the last one the mean."""
    block, table = network.encode.mix, network.encode.embed.table()
    before, after, value = select.before, select.after, select.value
    assert block.widen.bias is not None
    assert block.narrow.bias is not None
    assert select.fields.bias is not None
    given = torch.einsum("ocij,vc->vijo", block.widen.weight, table.relu())
    found = (
        functional.pad(given.flatten(1, 2), (0, 0, 0, 0, 0, 1)),
        block.widen.bias,
        block.narrow.weight.permute(1, 2, 3, 0).flatten(1),
        table + block.narrow.bias,
        _without_mean(select.fields.weight.permute(2, 3, 1, 0).flatten(0, 2)),
        _without_mean(select.fields.bias),
        before.weight * select.scorer(),
        _without_mean(before.weight[:, None] * value.weight.T),
        _without_mean(value.weight @ before.bias + value.bias),
        after.weight,
        after.bias,
    )
    return Layers(*(tensor.contiguous().numpy() for tensor in found))


def _without_mean(outputs: Tensor) -> Tensor:
    return outputs - outputs.mean(-1, keepdim=True)


@kernel
def _partial_states(words, layers, sizes, found):
    """Fill ``found`` (M, D) with the partial states of ``words`` (M, S)."""
    cells, channels = words.shape[1], layers.word.shape[1]
    number = (sizes.width - sizes.field_width + 1) * (sizes.height - sizes.field_height + 1)
    given, state = np.zeros((cells + 1, 9, channels), np.float32), np.empty((cells, channels), np.float32)
    patches = np.empty((TOGETHER * number, len(layers.fields)), np.float32)
    fields = np.empty((TOGETHER * number, found.shape[1]), np.float32)
    mixed = np.empty((TOGETHER, found.shape[1]), np.float32)
    for begin in range(0, len(words), TOGETHER):
        some = words[begin : begin + TOGETHER]
        for row in range(len(some)):
            changed = some[row] != some[row - 1] if row > 0 else np.ones(cells, np.bool_)
            _encode(some[row], changed, layers, sizes.height, given, state)
            _cut(state, sizes, patches[row * number : (row + 1) * number])
        count = len(some) * number
        np.dot(patches[:count], layers.fields, fields[:count])
        for row in range(len(some)):
            _mix(fields[row * number : (row + 1) * number], layers, sizes.top, mixed[row])
        np.dot(mixed[: len(some)], layers.value, found[begin : begin + TOGETHER])
    for row in range(len(found)):
        numbers = found[row]
        numbers += layers.value_bias
        scale = _scale(numbers)
        for unit in range(len(numbers)):
            numbers[unit] = max(numbers[unit] * scale * layers.gain[unit] + layers.offset[unit], np.float32(0.0))


@kernel
def _encode(words, changed, layers, height, given, state):
    """Fill ``state`` (S, C) with the encoded ``words`` (S,), where it is that of words that differ if ``changed`` (S,).

    States that follow each other are mostly of the same scene, and then only two of their cells differ. ``given``
    (S + 1, 9, C) is what cells of the hidden layer give to those around them, and what there is outside, nothing.
    """
    near = _with_neighbours(changed, height)
    touched = np.flatnonzero(near)
    hidden, around = np.empty((len(touched), len(layers.bias)), np.float32), _framed(words, height, len(layers.word))
    for place in range(len(touched)):
        _sum_around(touched[place], around, layers.given, layers.bias, hidden[place])
    np.maximum(hidden, np.float32(0.0), hidden)
    fresh, around = np.dot(hidden, layers.narrowed), _framed(np.arange(len(words)), height, len(words))
    for place in range(len(touched)):
        old, new = given[touched[place]].reshape(-1), fresh[place]
        for number in range(len(new)):
            old[number] = new[number]
    for cell in np.flatnonzero(_with_neighbours(near, height)):
        _sum_around(cell, around, given, layers.word[words[cell]], state[cell])


@kernel
def _framed(cells, height, outside):
    """(W + 2, H + 2) the numbers of ``cells`` (W * H,), with another one for all that is ``outside``."""
    width = len(cells) // height
    found = np.full((width + 2, height + 2), outside)
    for x in range(width):
        for y in range(height):
            found[x + 1, y + 1] = cells[x * height + y]
    return found


@kernel
def _with_neighbours(cells, height):
    """(S,) bool, the true ones of ``cells`` (S,) and the eight around them."""
    width, found = len(cells) // height, np.zeros(len(cells), np.bool_)
    for x in range(width):
        for y in range(height):
            if cells[x * height + y]:
                for left in range(max(x - 1, 0), min(x + 2, width)):
                    for upper in range(max(y - 1, 0), min(y + 2, height)):
                        found[left * height + upper] = True
    return found


@kernel
def _sum_around(cell, around, given, own, found):
    """Fill ``found`` (C,): a cell's ``own`` (C,), and what those around it give, (I, 9, C), as ``around`` says."""
    height = around.shape[1] - 2
    x, y = cell // height, cell % height
    for channel in range(len(found)):
        found[channel] = own[channel]
    for row in range(3):
        left, middle = given[around[x + row, y], 3 * row], given[around[x + row, y + 1], 3 * row + 1]
        right = given[around[x + row, y + 2], 3 * row + 2]
        for channel in range(len(found)):
            found[channel] += left[channel] + middle[channel] + right[channel]


@kernel
def _cut(state, sizes, patches):
    """Fill ``patches`` (F, K C) with the local fields of ``state`` (S, C)."""
    rows, columns = sizes.width - sizes.field_width + 1, sizes.height - sizes.field_height + 1
    length = sizes.field_height * state.shape[1]  # of a field's cells with the same x, which lie side by side
    flat = state.ravel()
    for x in range(rows):
        for y in range(columns):
            patch = patches[x * columns + y]
            for step in range(sizes.field_width):
                place = ((x + step) * sizes.height + y) * state.shape[1]
                into, out = patch[step * length : (step + 1) * length], flat[place : place + length]
                for number in range(length):
                    into[number] = out[number]


@kernel
def _mix(fields, layers, top, mixed):
    """Fill ``mixed`` (D,): the ``top`` best of ``fields`` (F, D) by their attention."""
    scores, scales = np.empty((2, len(fields)), np.float32)
    for field in range(len(fields)):
        numbers = fields[field]
        for unit in range(len(numbers)):
            numbers[unit] += layers.field_bias[unit]
        scales[field] = _scale(numbers)
        scores[field] = np.dot(numbers, layers.attention) * scales[field]
    highest, total = scores.max(), np.float32(0.0)
    mixed[:] = np.float32(0.0)
    for _ in range(top):
        best = scores.argmax()
        weight = np.exp(scores[best] - highest)
        scores[best] = -np.inf
        total += weight
        mixed += weight * scales[best] * fields[best]
    mixed /= total


@kernel
def _scale(numbers):
    """By what normalisation multiplies (D,) numbers whose mean is 0."""
    return np.float32(1.0) / np.sqrt(np.dot(numbers, numbers) / np.float32(len(numbers)) + EPSILON)
