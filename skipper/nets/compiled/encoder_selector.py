"""Twin of PartialStates without gradients: encoder and selector in one compiled pass, a few states at a time.

The contribution of every word to the first convolution is precomputed, so that this convolution is lookups and sums;
the other two are products of matrices that stay in the processor's cache. For a single state, most of the time of
PyTorch's layers is overhead.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from skipper.nets.compiled.exact_types import BAG_OF_WORDS, RESIDUAL_BLOCK, has_exact_types, within
from skipper.nets.encoder import StateEncoder
from skipper.nets.selector import LocalFieldSelector, PartialStates
from skipper.runtime.jit import kernel
from skipper.runtime.threads import run_parallel
from skipper.types import Array

EPSILON = 1e-5  # of both normalisations
BLOCK = 8  # states whose fields stay in the processor's cache

TYPES: dict[str, type[nn.Module]] = {
    "": PartialStates,
    "encode": StateEncoder,
    **within("encode.embed", BAG_OF_WORDS),
    **within("encode.mix", RESIDUAL_BLOCK),
    "select": LocalFieldSelector,
    "select.fields": nn.Conv2d,
    "select.before": nn.LayerNorm,
    "select.key": nn.Linear,
    "select.value": nn.Linear,
    "select.after": nn.LayerNorm,
}


def supports(module: nn.Module) -> bool:
    """Whether ``CompiledPartialStates`` computes the same function as the module."""
    if not has_exact_types(module, TYPES):
        return False
    assert isinstance(module, PartialStates)
    assert isinstance(module.select, LocalFieldSelector)
    return module.select.before.eps == module.select.after.eps == EPSILON


class Layers(NamedTuple):
    """Packed weights: C channels, D numbers in a partial state, K cells in a field, V words."""

    widened: Array  # (V + 1, 9, 2 C) contributions of words to the first convolution around them; 0 for outside
    bias: Array  # (2 C,)
    narrowed: Array  # (2 C, 9 C) contributions of its output to the second convolution, around each cell
    word: Array  # (V, C) embeddings of words, with the bias of the second convolution
    fields: Array  # (K C, D)
    field_bias: Array  # (D,)
    attention: Array  # (D,) the score of a normalised field is its product with this
    linear_attention: Array  # (K C,) the score of a field before its convolution, where scores are linear
    value: Array  # (D, D)
    value_bias: Array  # (D,)
    gain: Array  # (D,) of the last normalisation
    offset: Array  # (D,) of the last normalisation


class Sizes(NamedTuple):
    """Sizes of the grid and of a field, the number of selected fields, and whether their scores are linear."""

    width: int
    height: int
    field_width: int
    field_height: int
    top: int
    linear: bool


class CompiledPartialStates:
    """The function of a ``PartialStates`` module with the weights that it has at construction."""

    def __init__(self, module: PartialStates) -> None:
        assert isinstance(module.select, LocalFieldSelector)
        self._embed, self._select = module.encode.embed, module.select
        self._layers = _pack(module, module.select)

    def __call__(self, observation: Tensor) -> Tensor:
        """(M, W, H, C) integers to sigma(s), (M, D)."""
        words, layers = self._embed.cell_index(observation.numpy()), self._layers
        _, width, height, _ = observation.shape
        sizes = Sizes(width, height, *self._select.kernel, self._select.top, self._select.linear)
        partial = np.empty((len(words), len(layers.attention)), np.float32)
        run_parallel(lambda rows: _partial_states(words[rows], layers, sizes, partial[rows]), len(words), BLOCK)
        return torch.from_numpy(partial)


@torch.no_grad()
def _pack(module: PartialStates, select: LocalFieldSelector) -> Layers:
    """Pack the weights, with the first normalisation folded in except its scale, and the mean of the last one."""
    block, table = module.encode.mix, module.encode.embed.table()
    before, after, value = select.before, select.after, select.value
    assert block.widen.bias is not None
    assert block.narrow.bias is not None
    assert select.fields.bias is not None
    widened = torch.einsum("ocij,vc->vijo", block.widen.weight, table.relu())
    packed = (
        functional.pad(widened.flatten(1, 2), (0, 0, 0, 0, 0, 1)),
        block.widen.bias,
        block.narrow.weight.permute(1, 2, 3, 0).flatten(1),
        table + block.narrow.bias,
        _without_mean(select.fields.weight.permute(2, 3, 1, 0).flatten(0, 2)),
        _without_mean(select.fields.bias),
        before.weight * select.scorer(),
        select.linear_scorer().permute(1, 2, 0).flatten(),
        _without_mean(before.weight[:, None] * value.weight.T),
        _without_mean(value.weight @ before.bias + value.bias),
        after.weight,
        after.bias,
    )
    return Layers(*(tensor.contiguous().numpy() for tensor in packed))


def _without_mean(outputs: Tensor) -> Tensor:
    return outputs - outputs.mean(-1, keepdim=True)


@kernel
def _partial_states(words, layers, sizes, partial):
    """Fill ``partial`` (M, D) with the partial states of ``words`` (M, S).

    Linear scores are known before the fields, so that only the best of these are computed.
    """
    cells, channels = words.shape[1], layers.word.shape[1]
    number = (sizes.width - sizes.field_width + 1) * (sizes.height - sizes.field_height + 1)
    computed = sizes.top if sizes.linear else number  # fields of each state
    narrowed, state = np.zeros((cells + 1, 9, channels), np.float32), np.empty((cells, channels), np.float32)
    patches = np.empty((BLOCK * computed, len(layers.fields)), np.float32)
    fields = np.empty((BLOCK * computed, partial.shape[1]), np.float32)
    all_scores, scores = np.empty(number, np.float32), np.empty((BLOCK, computed), np.float32)
    mixed = np.empty((BLOCK, partial.shape[1]), np.float32)
    for begin in range(0, len(words), BLOCK):
        some = words[begin : begin + BLOCK]
        for row in range(len(some)):
            changed = some[row] != some[row - 1] if row > 0 else np.ones(cells, np.bool_)
            _encode(some[row], changed, layers, sizes.height, narrowed, state)
            if sizes.linear:
                _score_linearly(state, sizes, layers.linear_attention, all_scores)
            for index in range(computed):
                field = all_scores.argmax() if sizes.linear else index
                scores[row, index], all_scores[field] = all_scores[field], -np.inf
                _cut(state.ravel(), field, sizes, patches[row * computed + index])
        count = len(some) * computed
        np.dot(patches[:count], layers.fields, fields[:count])
        for row in range(len(some)):
            _mix(fields[row * computed : (row + 1) * computed], scores[row], layers, sizes, mixed[row])
        np.dot(mixed[: len(some)], layers.value, partial[begin : begin + BLOCK])
    _finish(layers, partial)


@kernel
def _finish(layers, partial):
    """The last normalisation and the ReLU, in place."""
    for row in range(len(partial)):
        numbers = partial[row]
        numbers += layers.value_bias
        scale = _scale(numbers)
        for unit in range(len(numbers)):
            numbers[unit] = max(numbers[unit] * scale * layers.gain[unit] + layers.offset[unit], np.float32(0.0))


@kernel
def _encode(words, changed, layers, height, narrowed, state):
    """Update ``state`` (S, C) to the encoding of ``words`` (S,), of which only those ``changed`` (S,) are new.

    Consecutive states are mostly of the same scene and differ in two cells. ``narrowed`` (S + 1, 9, C) holds the
    contributions of cells to the second convolution around them; the last row is for outside, 0.
    """
    near = with_neighbours(changed, height)
    touched = np.flatnonzero(near)
    hidden, around = np.empty((len(touched), len(layers.bias)), np.float32), _framed(words, height, len(layers.word))
    for row in range(len(touched)):
        _sum_around(touched[row], around, layers.widened, layers.bias, hidden[row])
    np.maximum(hidden, np.float32(0.0), hidden)
    fresh, around = np.dot(hidden, layers.narrowed), _framed(np.arange(len(words)), height, len(words))
    for row in range(len(touched)):
        old, new = narrowed[touched[row]].reshape(-1), fresh[row]
        for number in range(len(new)):
            old[number] = new[number]
    for cell in np.flatnonzero(with_neighbours(near, height)):
        _sum_around(cell, around, narrowed, layers.word[words[cell]], state[cell])


@kernel
def _framed(cells, height, outside):
    """(W + 2, H + 2) the ``cells`` (W * H,), framed by the number ``outside``."""
    width = len(cells) // height
    framed = np.full((width + 2, height + 2), outside)
    for x in range(width):
        for y in range(height):
            framed[x + 1, y + 1] = cells[x * height + y]
    return framed


@kernel
def with_neighbours(cells, height):
    """(S,) bool, the true ``cells`` (S,) and the eight around each."""
    width, found = len(cells) // height, np.zeros(len(cells), np.bool_)
    for x in range(width):
        for y in range(height):
            if cells[x * height + y]:
                for left in range(max(x - 1, 0), min(x + 2, width)):
                    for upper in range(max(y - 1, 0), min(y + 2, height)):
                        found[left * height + upper] = True
    return found


@kernel
def _sum_around(cell, around, contributions, own, total):
    """Fill ``total`` (C,): a cell's ``own`` (C,), plus the ``contributions`` (I, 9, C) of the cells around it.

    ``around`` (W + 2, H + 2) gives the row of contributions of every cell.
    """
    height = around.shape[1] - 2
    x, y = cell // height, cell % height
    for channel in range(len(total)):
        total[channel] = own[channel]
    for row in range(3):
        left = contributions[around[x + row, y], 3 * row]
        middle = contributions[around[x + row, y + 1], 3 * row + 1]
        right = contributions[around[x + row, y + 2], 3 * row + 2]
        for channel in range(len(total)):
            total[channel] += left[channel] + middle[channel] + right[channel]


@kernel
def _cut(flat, field, sizes, patch):
    """Fill ``patch`` (K C,) with one local field of the state ``flat`` (S C,)."""
    length = len(patch) // sizes.field_width  # of a field's cells with the same x, which are adjacent
    channels, columns = length // sizes.field_height, sizes.height - sizes.field_height + 1
    x, y = field // columns, field % columns
    for step in range(sizes.field_width):
        begin = ((x + step) * sizes.height + y) * channels
        column, source = patch[step * length : (step + 1) * length], flat[begin : begin + length]
        for number in range(length):
            column[number] = source[number]


@kernel
def _score_linearly(state, sizes, attention, scores):
    """Fill ``scores`` (F,) of the local fields of ``state`` (S, C) by products with ``attention`` (K C,)."""
    length = len(attention) // sizes.field_width
    columns, flat = sizes.height - sizes.field_height + 1, state.ravel()
    for field in range(len(scores)):
        x, y = field // columns, field % columns
        scores[field] = np.float32(0.0)
        for step in range(sizes.field_width):
            begin = ((x + step) * sizes.height + y) * state.shape[1]
            part = attention[step * length : (step + 1) * length]
            scores[field] += np.dot(flat[begin : begin + length], part)


@kernel
def _mix(fields, scores, layers, sizes, mixed):
    """Fill ``mixed`` (D,): the mean of the best of ``fields`` (F, D), weighted by attention.

    ``scores`` (F,) are given where they are linear, and otherwise filled.
    """
    scales = np.empty(len(fields), np.float32)
    for field in range(len(fields)):
        numbers = fields[field]
        for unit in range(len(numbers)):
            numbers[unit] += layers.field_bias[unit]
        scales[field] = _scale(numbers)
        if not sizes.linear:
            scores[field] = np.dot(numbers, layers.attention) * scales[field]
    highest, total = scores.max(), np.float32(0.0)
    mixed[:] = np.float32(0.0)
    for _ in range(sizes.top):
        best = scores.argmax()
        weight = np.exp(scores[best] - highest)
        scores[best] = -np.inf
        total += weight
        mixed += weight * scales[best] * fields[best]
    mixed /= total


@kernel
def _scale(numbers):
    """Factor of the normalisation of (D,) numbers whose mean is 0."""
    return np.float32(1.0) / np.sqrt(np.dot(numbers, numbers) / np.float32(len(numbers)) + np.float32(EPSILON))
