"""Twin of PartialStates with gradients, for many states of a few scenes.

States of a scene differ in a few cells, so that the convolutions of most of their cells have the same results. Here the
first state of each scene is encoded as a whole, and the others only around the cells that differ. Scores of local
fields must be linear: then the fields that are not selected need not be computed.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from skipper.nets.compiled import encoder_selector
from skipper.nets.compiled.encoder_selector import with_neighbours
from skipper.nets.selector import LocalFieldSelector, PartialStates
from skipper.runtime.jit import kernel
from skipper.types import Array


def supports(module: nn.Module) -> bool:
    """Whether ``partial_states`` computes the same function as the module."""
    if not encoder_selector.supports(module):
        return False
    assert isinstance(module, PartialStates)
    return isinstance(module.select, LocalFieldSelector) and module.select.linear


def encode(module: PartialStates, observation: Tensor, scene: Tensor) -> Tensor:
    """(M, W, H, C) integers to sigma(s), (M, D), by ``partial_states`` where it can."""
    encoded: Tensor = partial_states(module, observation, scene) if supports(module) else module(observation)
    return encoded


class SceneCells(NamedTuple):
    """The distinct cells of M states with S cells each: R1 of the hidden layer, R2 of the encoding."""

    words: Array  # (R1, 9) words around each cell of the hidden layer; V outside of the grid
    hidden: Array  # (R2, 9) cells of the hidden layer around each cell of the encoding; -1 outside of the grid
    word: Array  # (R2,) its own word
    cell: Array  # (M, S) the cell of the encoding at each place of each state


def partial_states(module: PartialStates, observation: Tensor, scene: Tensor) -> Tensor:
    """(M, W, H, C) integers to sigma(s), (M, D): the same as ``module(observation)``.

    States of the same number in ``scene`` (M,), from 0, may differ anywhere, but the less they do, the faster.
    """
    select = module.select
    assert isinstance(select, LocalFieldSelector)
    block, embed = module.encode.mix, module.encode.embed
    assert block.narrow.bias is not None
    words, vectors = embed.used_words(observation)  # (M, S), (V, C)
    # The residual block, with the vectors folded into its first convolution, once for each distinct cell.
    cells = find_cells(words, scene.numpy(), observation.shape[2], len(vectors))
    widened = torch.einsum("ocij,vc->vijo", block.widen.weight, vectors.relu()).flatten(1, 2)  # (V, 9, 2 C)
    narrowed = block.narrow.weight.permute(1, 2, 3, 0).flatten(1)  # (2 C, 9 C)
    own = vectors + block.narrow.bias
    encoded: Tensor = _EncodeCells.apply(widened, block.widen.bias, narrowed, own, cells)  # (R2, C)
    # Select local fields by their scores, and attend to these.
    with torch.no_grad():
        parts = encoded @ select.linear_scorer().flatten(1)  # (R2, K) what a cell adds to a score, by its place
        chosen = _best_fields(parts.numpy(), cells.cell, select.cells.numpy(), select.top)  # (M, k)
    patches = encoded.index_select(0, _places(cells, select, chosen)).view(len(chosen), select.top, -1)
    return select.attend(select.project(patches), torch.from_numpy(chosen)).partial


def _places(cells: SceneCells, select: LocalFieldSelector, chosen: Array) -> Tensor:
    """(M k K,) the cells of the encoding that make up the chosen fields (M, k)."""
    places = select.cells.numpy()[chosen]  # (M, k, K)
    return torch.from_numpy(np.take_along_axis(cells.cell, places.reshape(len(chosen), -1), 1).ravel())


class _EncodeCells(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, *arguments: Any) -> Tensor:
        widened, bias, narrowed, own, cells = arguments
        hidden = torch.from_numpy(_sum_words(widened.numpy(), bias.numpy(), cells.words))
        spread = hidden @ narrowed
        context.save_for_backward(hidden, narrowed)
        context.cells, context.number = cells, len(own)
        return torch.from_numpy(_sum_hidden(spread.numpy(), own.numpy(), cells.hidden, cells.word))

    @staticmethod
    @once_differentiable
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        hidden, narrowed = context.saved_tensors
        cells, words, gradient = context.cells, context.number, gradients[0].contiguous().numpy()
        sums = _at_spread(gradient, cells.hidden, cells.word, len(hidden), words)
        at_spread, at_own = map(torch.from_numpy, sums)
        at_hidden = at_spread @ narrowed.T
        sums = _at_words(at_hidden.numpy(), hidden.numpy(), cells.words, words)
        at_widened, at_bias = map(torch.from_numpy, sums)
        return at_widened, at_bias, hidden.T @ at_spread, at_own, None


@kernel
def find_cells(words, scene, height, outside):
    """The distinct cells of states of ``words`` (M, S); a state differs from the first one of its scene, (M,)."""
    number, cells = words.shape
    width = cells // height
    hidden_words, hidden = np.empty((2, number * cells, 9), np.int32)
    word = np.empty(number * cells, np.int32)
    cell, of_hidden = np.empty((number, cells), np.int64), np.empty((number, cells), np.int32)
    hidden_count, count = 0, 0
    first = np.full(scene.max() + 1, -1)
    for state in range(number):
        # Where does this state differ from the first one of its scene?
        base = first[scene[state]]
        if base < 0:
            first[scene[state]] = state
            near = np.ones(cells, np.bool_)
        else:
            near = with_neighbours(words[state] != words[base], height)
            of_hidden[state], cell[state] = of_hidden[base], cell[base]
        # The hidden layer differs there and around it, the encoding around that.
        for place in np.flatnonzero(near):
            of_hidden[state, place] = hidden_count
            _around(place, words[state], width, height, outside, hidden_words[hidden_count])
            hidden_count += 1
        for place in np.flatnonzero(with_neighbours(near, height)):
            cell[state, place], word[count] = count, words[state, place]
            _around(place, of_hidden[state], width, height, -1, hidden[count])
            count += 1
    return SceneCells(hidden_words[:hidden_count], hidden[:count], word[:count], cell)


@kernel
def _around(place, numbers, width, height, outside, found):
    """Fill ``found`` (9,) with the ``numbers`` (S,) of a place and the eight around it."""
    x, y = place // height, place % height
    for index in range(9):
        left, upper = x + index // 3 - 1, y + index % 3 - 1
        inside = 0 <= left < width and 0 <= upper < height
        found[index] = numbers[left * height + upper] if inside else outside


@kernel
def _sum_words(widened, bias, words):
    """(R1, H) the hidden layer: a bias (H,), and what the ``words`` (R1, 9) around each cell add, (V, 9, H)."""
    hidden = np.empty((len(words), len(bias)), np.float32)
    for cell in range(len(words)):
        total = hidden[cell]
        total[:] = bias
        for index in range(9):
            if words[cell, index] < len(widened):
                added = widened[words[cell, index], index]
                for unit in range(len(total)):
                    total[unit] += added[unit]
        for unit in range(len(total)):
            total[unit] = max(total[unit], np.float32(0.0))
    return hidden


@kernel
def _sum_hidden(spread, own, hidden, word):
    """(R2, C) the encoding: each cell's ``own`` (V, C), and what the cells of the hidden layer around it add."""
    channels = own.shape[1]
    encoded = np.empty((len(hidden), channels), np.float32)
    for cell in range(len(hidden)):
        total = encoded[cell]
        total[:] = own[word[cell]]
        for index in range(9):
            if hidden[cell, index] >= 0:
                added = spread[hidden[cell, index], index * channels : (index + 1) * channels]
                for unit in range(channels):
                    total[unit] += added[unit]
    return encoded


@kernel
def _at_spread(gradient, hidden, word, hidden_count, number):
    """The gradients of ``_sum_hidden`` at its first two arguments."""
    channels = gradient.shape[1]
    at_spread = np.zeros((hidden_count, 9 * channels), np.float32)
    at_own = np.zeros((number, channels), np.float32)
    for cell in range(len(hidden)):
        slope, own = gradient[cell], at_own[word[cell]]
        for unit in range(channels):
            own[unit] += slope[unit]
        for index in range(9):
            if hidden[cell, index] >= 0:
                total = at_spread[hidden[cell, index], index * channels : (index + 1) * channels]
                for unit in range(channels):
                    total[unit] += slope[unit]
    return at_spread, at_own


@kernel
def _at_words(gradient, hidden, words, number):
    """The gradients of ``_sum_words`` at its first two arguments, from that at its result, (R1, H)."""
    units = gradient.shape[1]
    at_widened, at_bias = np.zeros((number, 9, units), np.float32), np.zeros(units, np.float32)
    slope = np.empty(units, np.float32)
    for cell in range(len(words)):
        for unit in range(units):
            slope[unit] = gradient[cell, unit] if hidden[cell, unit] > 0.0 else np.float32(0.0)
            at_bias[unit] += slope[unit]
        for index in range(9):
            if words[cell, index] < number:
                total = at_widened[words[cell, index], index]
                for unit in range(units):
                    total[unit] += slope[unit]
    return at_widened, at_bias


@kernel
def _best_fields(parts, cell, fields, top):
    """(M, k) the best fields, best first, of states given by their cells (M, S) of the encoding.

    ``parts`` (R2, K) is what a cell adds to the score of a field, by its place in the field; ``fields`` (F, K) are the
    places of the fields' cells.
    """
    chosen = np.empty((len(cell), top), np.int64)
    scores = np.empty(len(fields), np.float32)
    for state in range(len(cell)):
        for field in range(len(fields)):
            total = np.float32(0.0)
            for place in range(fields.shape[1]):
                total += parts[cell[state, fields[field, place]], place]
            scores[field] = total
        for rank in range(top):
            chosen[state, rank] = scores.argmax()
            scores[chosen[state, rank]] = -np.inf
    return chosen
