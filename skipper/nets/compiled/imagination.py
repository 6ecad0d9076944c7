"""Imagining many states of a scene, and again when little of it has changed.

Between two plans of an episode that is mostly the cells that the agent left and entered. So what was imagined before is
kept, and only what depends on the changed cells is added anew.
"""

from typing import NamedTuple

import numpy as np
from torch import Tensor

from skipper.nets.compiled.fuser import Parts, fuse
from skipper.nets.generator import CheckpointGenerator
from skipper.runtime.jit import kernel
from skipper.runtime.threads import shared
from skipper.types import Array

SHARE = 8  # environments for which a thread of their own pays
MOST_CHANGES = 8  # cells; where more of a scene changed, it is looked at anew


class Scenes(NamedTuple):
    """What is known of the scenes of E environments."""

    words: Array  # (E, S) in the cells, when a scene was looked at; -1 where none was
    context: Array  # (E, S, C) what they add to the hidden layer
    logits: Array  # (E, codes, S)
    described: Array  # (codes, S, C) what codes add to the hidden layer, the same for all scenes


class Imagination:
    """The cells that codes name, in environments whose scenes change little between one question and the next."""

    def __init__(self, generator: CheckpointGenerator) -> None:
        self._generator = generator
        self._parts: Parts | None = None  # with which the scenes were looked at
        self._scenes = _blank(0, generator.parts())

    def cells(self, rows: Array, observation: Tensor, codes: Array) -> Array:
        """(R, N) the most likely cells for ``codes`` (R, N) in the environments ``rows`` (R,)."""
        words, parts, height = self._generator.words(observation), self._generator.parts(), observation.shape[2]
        self._look(rows, words, parts, height)
        found = np.empty(codes.shape, np.int64)

        def work(some: slice) -> None:
            _imagine_again(rows[some], words[some], codes[some], parts, self._scenes, found[some], height)

        shared(work, len(rows), SHARE)
        return found

    def _look(self, rows: Array, words: Array, parts: Parts, height: int) -> None:
        """Imagine all codes where a scene is new."""
        environments = int(rows.max(initial=-1)) + 1
        if parts is not self._parts or environments > len(self._scenes.words):
            self._parts, self._scenes = parts, _blank(environments, parts)
        scenes = self._scenes
        new = (scenes.words[rows] != words).sum(-1) > MOST_CHANGES
        new |= scenes.words[rows, 0] < 0
        if new.any():
            place, codes = rows[new], np.tile(np.arange(len(parts.code)), (new.sum(), 1))
            scenes.words[place] = words[new]
            scenes.logits[place], scenes.context[place] = fuse(words[new], codes, parts, height)


def _blank(environments: int, parts: Parts) -> Scenes:
    codes, channels, cells = parts.described.shape
    return Scenes(
        words=np.full((environments, cells), -1),
        context=np.empty((environments, cells, channels), np.float32),
        logits=np.empty((environments, codes, cells), np.float32),
        described=np.ascontiguousarray(parts.described.transpose(0, 2, 1)),
    )


@kernel
def _imagine_again(rows, words, codes, parts, scenes, found, height):
    """Fill ``found`` (R, N): the cells of codes, with what changes since scenes were looked at make of their logits."""
    cells, channels = scenes.context.shape[1:]
    touched, fresh = np.empty(cells, np.int64), np.empty((cells, channels), np.float32)
    change, logits = np.empty((codes.shape[1] * cells, channels), np.float32), np.empty(cells, np.float32)
    added = np.empty((codes.shape[1] * cells, 9), np.float32)
    folded = np.ascontiguousarray(parts.folded.T)
    for row in range(len(rows)):
        before, now, context = scenes.words[rows[row]], words[row], scenes.context[rows[row]]
        number = _touch(before, now, parts, context, touched, fresh, height)
        for place in range(codes.shape[1]):
            described = scenes.described[codes[row, place]]
            _rise(described, context, fresh, touched[:number], change[place * number : (place + 1) * number])
        count = codes.shape[1] * number
        np.dot(change[:count], folded, added[:count])
        for place in range(codes.shape[1]):
            known = scenes.logits[rows[row], codes[row, place]]
            for cell in range(cells):
                logits[cell] = known[cell]
            for each in range(number):
                cell = touched[each]
                logits[cell] += parts.word[now[cell]] - parts.word[before[cell]]
                _give(added[place * number + each], cell, logits, height)
            best = 0
            for cell in range(cells):
                if logits[cell] > logits[best]:
                    best = cell
            found[row, place] = best


@kernel
def _rise(described, context, fresh, touched, change):
    """Fill ``change`` (touched, C): by how much the hidden layer of a code rises where the context is ``fresh``."""
    zero = np.float32(0.0)
    for each in range(len(touched)):
        code, old, new, rise = described[touched[each]], context[touched[each]], fresh[each], change[each]
        for channel in range(len(code)):
            rise[channel] = max(new[channel] + code[channel], zero) - max(old[channel] + code[channel], zero)


@kernel
def _give(added, cell, logits, height):
    """Add what one cell gives to itself and its eight neighbours, (9,), to ``logits`` (S,)."""
    width, x, y = len(logits) // height, cell // height, cell % height
    for i in range(max(1 - x, 0), min(width - x + 1, 3)):
        for j in range(max(1 - y, 0), min(height - y + 1, 3)):
            logits[(x + i - 1) * height + y + j - 1] += added[i * 3 + j]


@kernel
def _touch(before, now, parts, context, touched, fresh, height):
    """How many cells lie at changes; fill in which, and what their context adds to the hidden layer now."""
    width, number = len(now) // height, 0
    place = np.full(len(now), -1)  # of a cell among those touched
    for x in range(width):
        for y in range(height):
            old, new = before[x * height + y], now[x * height + y]
            if old == new:
                continue
            for i in range(max(x - width + 2, 0), min(x + 2, 3)):
                for j in range(max(y - height + 2, 0), min(y + 2, 3)):
                    cell = (x + 1 - i) * height + y + 1 - j
                    if place[cell] < 0:
                        place[cell], touched[number], fresh[number] = number, cell, context[cell]
                        number += 1
                    fresh[place[cell]] += parts.given[new, i * 3 + j] - parts.given[old, i * 3 + j]
    return number
