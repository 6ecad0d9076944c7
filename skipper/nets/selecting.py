"""Partial states of a network that stands still: encoder and selector in one compiled pass, a few states at a time.

What every word gives to the first convolution is known, so that is looking up and adding; the other two are products
of matrices that stay in the cache. For a single state, most of the time of the library's layers is not arithmetic.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from skipper.kernels import kernel
from skipper.nets.layers import WeightsWatch
from skipper.nets.partial import PartialStates
from skipper.nets.selector import LocalFieldSelector
from skipper.processor import shared
from skipper.types import Array

TOGETHER = 8  # states whose fields stay in the processor's cache


class Layers(NamedTuple):
    """Weights as the products want them: C channels, D numbers in a partial state, K cells in a field."""

    given: Array  # (V, 9, 2 C) what every word adds to the first convolution, in the cells around it
    bias: Array  # (2 C,)
    narrowed: Array  # (2 C, 9 C) what the first convolution adds to the second, in the cells around
    word: Array  # (V, C) what every word adds to its cell beside that
    fields: Array  # (K C, D)
    attention: Array  # (D,) a field's score is its product with this
    value: Array  # (D, D)
    offsets: Array  # (6, D) of fields, gain and offset of their normalisation, of values, gain and offset of theirs


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
        # Without one, all is a product of large matrices, with which the library is fast.
        self._select = network.select if isinstance(network.select, LocalFieldSelector) else None
        self._layers: Layers | None = None  # of the weights as they are

    @torch.no_grad()
    def __call__(self, observation: Tensor) -> Tensor:
        """(M, W, H, C) integers to sigma(s), (M, D)."""
        if self._select is None:
            partial: Tensor = self._network(observation)
            return partial
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
    block, table = network.encode.mix, network.encode.embed.table()
    before, after = select.before, select.after
    assert block.widen.bias is not None
    assert block.narrow.bias is not None
    assert select.fields.bias is not None
    given = torch.einsum("ocij,vc->vijo", block.widen.weight, table.relu())
    offsets = (select.fields.bias, before.weight, before.bias, select.value.bias, after.weight, after.bias)
    found = (
        given.flatten(1, 2),
        block.widen.bias,
        block.narrow.weight.permute(1, 2, 3, 0).flatten(1),
        table + block.narrow.bias,
        select.fields.weight.permute(2, 3, 1, 0).flatten(0, 2),
        select.scorer(),
        select.value.weight.T,
        torch.stack(offsets),
    )
    return Layers(*(tensor.contiguous().numpy() for tensor in found))


@kernel
def _partial_states(words, layers, sizes, found):
    """Fill ``found`` (M, D) with the partial states of ``words`` (M, S)."""
    cells, channels = words.shape[1], layers.word.shape[1]
    number = (sizes.width - sizes.field_width + 1) * (sizes.height - sizes.field_height + 1)
    given, state = np.empty((cells, 9, channels), np.float32), np.empty((cells, channels), np.float32)
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
        found[row] += layers.offsets[3]
        _normalise(found[row], layers.offsets[4], layers.offsets[5])
        np.maximum(found[row], np.float32(0.0), found[row])


@kernel
def _encode(words, changed, layers, height, given, state):
    """Fill ``state`` (S, C) with the encoded ``words`` (S,), where it is that of words that differ if ``changed`` (S,).

    States that follow each other are mostly of the same scene, and then only two of their cells differ. ``given``
    (S, 9, C) is what cells of the hidden layer give to those around them.
    """
    near = _with_neighbours(changed, height)
    touched, cells = np.flatnonzero(near), np.arange(len(words))
    hidden = np.empty((len(touched), len(layers.bias)), np.float32)
    for place in range(len(touched)):
        _sum_around(touched[place], words, layers.given, layers.bias, height, hidden[place])
    np.maximum(hidden, np.float32(0.0), hidden)
    fresh = np.dot(hidden, layers.narrowed)
    for place in range(len(touched)):
        old, new = given[touched[place]].reshape(-1), fresh[place]
        for number in range(len(new)):
            old[number] = new[number]
    for cell in np.flatnonzero(_with_neighbours(near, height)):
        _sum_around(cell, cells, given, layers.word[words[cell]], height, state[cell])


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
def _sum_around(cell, index, given, own, height, found):
    """Fill ``found`` (C,): a cell's ``own`` (C,), and what those around it give, (I, 9, C), as ``index`` (S,) says."""
    width, x, y = len(index) // height, cell // height, cell % height
    for channel in range(len(found)):
        found[channel] = own[channel]
    for i in range(max(1 - x, 0), min(width - x + 1, 3)):
        for j in range(max(1 - y, 0), min(height - y + 1, 3)):
            added = given[index[(x + i - 1) * height + y + j - 1], i * 3 + j]
            for channel in range(len(found)):
                found[channel] += added[channel]


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
    """Fill ``mixed`` (D,): the ``top`` best of ``fields`` (F, D), which are normalised in place, by their attention."""
    scores = np.empty(len(fields), np.float32)
    for field in range(len(fields)):
        fields[field] += layers.offsets[0]
        _normalise(fields[field], layers.offsets[1], layers.offsets[2])
        scores[field] = np.dot(fields[field], layers.attention)
    highest, total = scores.max(), np.float32(0.0)
    mixed[:] = np.float32(0.0)
    for _ in range(top):
        best = scores.argmax()
        weight = np.exp(scores[best] - highest)
        scores[best] = -np.inf
        total += weight
        for unit in range(len(mixed)):
            mixed[unit] += weight * fields[best, unit]
    mixed /= total


@kernel
def _normalise(numbers, gain, offset):
    """Layer normalisation in place, of (D,) numbers."""
    mean = np.dot(numbers, np.ones_like(numbers)) / np.float32(len(numbers))  # many times as fast as sum
    numbers -= mean
    scale = np.float32(1.0) / np.sqrt(np.dot(numbers, numbers) / np.float32(len(numbers)) + np.float32(1e-5))
    for unit in range(len(numbers)):
        numbers[unit] = numbers[unit] * scale * gain[unit] + offset[unit]
