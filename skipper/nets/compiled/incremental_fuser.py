"""The compiled fuser for scenes that change little between two plans of an episode.

What changes is mostly the two cells that the agent left and entered. So the logits of all codes are kept for each
environment, and only the contributions of changed cells are updated.
"""

from typing import NamedTuple

import numpy as np
from torch import Tensor

from skipper.nets.compiled.fuser import CompiledFuser, Parts, fuse
from skipper.runtime.jit import kernel
from skipper.runtime.threads import run_parallel
from skipper.types import Array

BLOCK = 8  # environments for which a thread of their own pays
MOST_CHANGES = 8  # cells; a scene that changed more is computed again


class Scenes(NamedTuple):
    """Results for the scenes of E environments."""

    words: Array  # (E, S) of the cells when the scene was computed, -1 where none was
    context: Array  # (E, S, C) their contributions to the hidden layer
    logits: Array  # (E, codes, S)
    described: Array  # (codes, S, C) contributions of codes to the hidden layer, the same for all scenes


class IncrementalFuser:
    """The most likely cells of codes, in environments whose scenes are kept from one call to the next."""

    def __init__(self, fuser: CompiledFuser) -> None:
        self._fuser, self._scenes = fuser, _blank(0, fuser.parts)

    def cells(self, environments: Array, observation: Tensor, codes: Array) -> Array:
        """(R, N) the most likely cells for ``codes`` (R, N) in ``environments`` (R,) that show (R, W, H, C)."""
        words, parts, height = self._fuser.words(observation), self._fuser.parts, observation.shape[2]
        self._compute_new_scenes(environments, words, height)
        cells = np.empty(codes.shape, np.int64)

        def work(rows: slice) -> None:
            _update(environments[rows], words[rows], codes[rows], parts, self._scenes, cells[rows], height)

        run_parallel(work, len(environments), BLOCK)
        return cells

    def _compute_new_scenes(self, environments: Array, words: Array, height: int) -> None:
        """Compute the logits of all codes where a scene is new."""
        parts, count = self._fuser.parts, int(environments.max(initial=-1)) + 1
        if count > len(self._scenes.words):
            self._scenes = _blank(count, parts)
        scenes = self._scenes
        new = (scenes.words[environments] != words).sum(-1) > MOST_CHANGES
        new |= scenes.words[environments, 0] < 0
        if new.any():
            index, codes = environments[new], np.tile(np.arange(len(parts.code)), (new.sum(), 1))
            scenes.words[index] = words[new]
            scenes.logits[index], scenes.context[index] = fuse(words[new], codes, parts, height)


def _blank(environments: int, parts: Parts) -> Scenes:
    codes, channels, cells = parts.described.shape
    return Scenes(
        words=np.full((environments, cells), -1),
        context=np.empty((environments, cells, channels), np.float32),
        logits=np.empty((environments, codes, cells), np.float32),
        described=np.ascontiguousarray(parts.described.transpose(0, 2, 1)),
    )


@kernel
def _update(environments, words, codes, parts, scenes, cells, height):
    """Fill ``cells`` (R, N): the most likely ones, by the kept logits and the changes since they were computed."""
    size, channels = scenes.context.shape[1:]
    touched, fresh = np.empty(size, np.int64), np.empty((size, channels), np.float32)
    change, logits = np.empty((codes.shape[1] * size, channels), np.float32), np.empty(size, np.float32)
    added = np.empty((codes.shape[1] * size, 9), np.float32)
    folded = np.ascontiguousarray(parts.folded.T)
    for row in range(len(environments)):
        before, now, context = scenes.words[environments[row]], words[row], scenes.context[environments[row]]
        number = _touch(before, now, parts, context, touched, fresh, height)
        for column in range(codes.shape[1]):
            described = scenes.described[codes[row, column]]
            _difference(described, context, fresh, touched[:number], change[column * number : (column + 1) * number])
        count = codes.shape[1] * number
        np.dot(change[:count], folded, added[:count])
        for column in range(codes.shape[1]):
            kept = scenes.logits[environments[row], codes[row, column]]
            for cell in range(size):
                logits[cell] = kept[cell]
            for index in range(number):
                cell = touched[index]
                logits[cell] += parts.word[now[cell]] - parts.word[before[cell]]
                _add_around(added[column * number + index], cell, logits, height)
            best = 0
            for cell in range(size):
                if logits[cell] > logits[best]:
                    best = cell
            cells[row, column] = best


@kernel
def _difference(described, context, fresh, touched, change):
    """Fill ``change`` (touched, C): the difference of the hidden layer of a code where the context is ``fresh``."""
    zero = np.float32(0.0)
    for index in range(len(touched)):
        code, old, new, rise = described[touched[index]], context[touched[index]], fresh[index], change[index]
        for channel in range(len(code)):
            rise[channel] = max(new[channel] + code[channel], zero) - max(old[channel] + code[channel], zero)


@kernel
def _add_around(added, cell, logits, height):
    """Add the contributions (9,) of one cell to itself and its eight neighbours, to ``logits`` (S,)."""
    width, x, y = len(logits) // height, cell // height, cell % height
    for i in range(max(1 - x, 0), min(width - x + 1, 3)):
        for j in range(max(1 - y, 0), min(height - y + 1, 3)):
            logits[(x + i - 1) * height + y + j - 1] += added[i * 3 + j]


@kernel
def _touch(before, now, parts, context, touched, fresh, height):
    """The number of cells around changes; fills in these cells and the contributions of their context now."""
    width, number = len(now) // height, 0
    index = np.full(len(now), -1)  # of a cell among those touched
    for x in range(width):
        for y in range(height):
            old, new = before[x * height + y], now[x * height + y]
            if old == new:
                continue
            for i in range(max(x - width + 2, 0), min(x + 2, 3)):
                for j in range(max(y - height + 2, 0), min(y + 2, 3)):
                    cell = (x + 1 - i) * height + y + 1 - j
                    if index[cell] < 0:
                        index[cell], touched[number], fresh[number] = number, cell, context[cell]
                        number += 1
                    fresh[index[cell]] += parts.widened[new, i * 3 + j] - parts.widened[old, i * 3 + j]
    return number
