"""The fuser of a generator that stands still: what every word and every code adds to its logits is known.

So imagining is looking up and adding, with one product of small matrices for every code.
"""

from typing import NamedTuple

import numpy as np

from skipper.runtime.jit import kernel
from skipper.runtime.threads import shared
from skipper.types import Array

SHARE = 2  # contexts for which a thread of their own pays


class Parts(NamedTuple):
    """All that words and codes can add to the hidden layer of a fuser, and to its logits."""

    given: Array  # (V, 9, C) to the hidden layer, by every word to the cells around it
    described: Array  # (codes, C, S) to the hidden layer, by every code
    bias: Array  # (C,)
    folded: Array  # (9, C) what a hidden channel adds to the logits of the cells around it
    word: Array  # (V,) to the logits, by every word to its cell
    code: Array  # (codes, S) to the logits, by every code


def fuse(words: Array, codes: Array, parts: Parts, height: int) -> tuple[Array, Array]:
    """Logits (B, N, S) of the agent's cell for ``codes`` (B, N) in contexts, ``words`` (B, S).

    And what the contexts add to the hidden layer, (B, S, C).
    """
    logits: Array = parts.word[words][:, None] + parts.code[codes]
    contexts = np.empty((*words.shape, len(parts.bias)), np.float32)

    def work(some: slice) -> None:
        _fuse(words[some], codes[some], parts, contexts[some], logits[some], height)

    shared(work, len(words), SHARE)
    return logits, contexts


@kernel
def _fuse(words, codes, parts, contexts, logits, height):
    """Fill ``contexts``, and add to ``logits`` what the hidden layer says.

    One pass, in which nothing leaves the cache.
    """
    channels, cells = parts.described.shape[1:]
    hidden, added = np.empty((channels, cells), np.float32), np.empty((9, cells), np.float32)
    for row in range(len(codes)):
        _widen(words[row], parts.given, parts.bias, contexts[row], height)
        turned = np.ascontiguousarray(contexts[row].T)  # (C, S)
        for place in range(codes.shape[1]):
            described = parts.described[codes[row, place]]
            for channel in range(channels):
                for cell in range(cells):
                    hidden[channel, cell] = max(turned[channel, cell] + described[channel, cell], np.float32(0.0))
            np.dot(parts.folded, hidden, added)
            _give_to_neighbours(added, logits[row, place], height)


@kernel
def _widen(words, given, bias, context, height):
    """Fill ``context`` (S, C), a first convolution: ``words`` (S,) give (V, 9, C) to the cells around them."""
    width = len(words) // height
    context[:] = bias
    for x in range(width):
        for y in range(height):
            word = words[x * height + y]
            for i in range(max(x - width + 2, 0), min(x + 2, 3)):
                for j in range(max(y - height + 2, 0), min(y + 2, 3)):
                    into, added = context[(x + 1 - i) * height + y + 1 - j], given[word, i * 3 + j]
                    for channel in range(len(bias)):
                        into[channel] += added[channel]


@kernel
def _give_to_neighbours(added, logits, height):
    """Add what every cell gives to itself and its eight neighbours, (9, S), to ``logits`` (S,)."""
    width = len(logits) // height
    for neighbour in range(9):
        right, down = neighbour // 3 - 1, neighbour % 3 - 1
        for x in range(max(-right, 0), min(width, width - right)):
            for y in range(max(-down, 0), min(height, height - down)):
                logits[(x + right) * height + y + down] += added[neighbour, x * height + y]
