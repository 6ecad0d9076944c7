"""Imagining many states of a scene, and again when little of it has changed.

Between two plans of an episode that is mostly the cells that the agent left and entered. So what was imagined before is
kept, and only what depends on the changed cells is added anew.
"""

from typing import NamedTuple

import numpy as np
from torch import Tensor

from skipper.kernels import kernel
from skipper.nets.fusing import Parts, fuse, widen
from skipper.nets.generator import CheckpointGenerator
from skipper.types import Array

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
        self._scenes: Scenes

    def cells(self, rows: Array, observation: Tensor, codes: Array) -> Array:
        """(R, N) the most likely cells for ``codes`` (R, N) in the environments ``rows`` (R,)."""
        words, parts, height = self._generator.words(observation), self._generator.parts(), observation.shape[2]
        self._look(rows, words, parts, height)
        found = np.empty(codes.shape, np.int64)
        _imagine_again(rows, words, codes, parts, self._scenes, found, height)
        return found

    def _look(self, rows: Array, words: Array, parts: Parts, height: int) -> None:
        """Imagine all codes where a scene is new."""
        environments, (codes, channels, cells) = int(rows.max()) + 1, parts.described.shape
        if parts is not self._parts or environments > len(self._scenes.words):
            self._parts, shape = parts, (environments, cells)
            self._scenes = Scenes(
                words=np.full(shape, -1),
                context=np.empty((*shape, channels), np.float32),
                logits=np.empty((environments, codes, cells), np.float32),
                described=np.ascontiguousarray(parts.described.transpose(0, 2, 1)),
            )
        new = (self._scenes.words[rows] != words).sum(-1) > MOST_CHANGES
        if new.any():
            self._scenes.words[rows[new]] = words[new]
            self._scenes.logits[rows[new]] = fuse(words[new], np.tile(np.arange(codes), (new.sum(), 1)), parts, height)
            _contexts(rows[new], words[new], parts, self._scenes.context, height)


@kernel
def _contexts(rows, words, parts, contexts, height):
    """Fill ``contexts`` (E, S, C) of the environments ``rows``."""
    for row in range(len(rows)):
        widen(words[row], parts, contexts[rows[row]], height)


@kernel
def _imagine_again(rows, words, codes, parts, scenes, found, height):
    """Fill ``found`` (R, N): add what changes since the scenes were looked at makes of their logits."""
    count, channels, cells, zero = codes.shape[1], scenes.context.shape[2], words.shape[1], np.float32(0.0)
    touched, context = np.empty(cells, np.int64), np.empty((cells, channels), np.float32)
    for row in range(len(rows)):
        scene = rows[row]
        before, now = scenes.words[scene], words[row]
        number = _touch(before, now, parts, scenes.context[scene], touched, context, height)
        change = np.empty((count * number, channels), np.float32)
        for place in range(count):
            for each in range(number):
                described, old = (
                    scenes.described[codes[row, place], touched[each]],
                    scenes.context[scene, touched[each]],
                )
                new, rise = context[each], change[place * number + each]
                for channel in range(channels):
                    code = described[channel]
                    rise[channel] = max(new[channel] + code, zero) - max(old[channel] + code, zero)
        added = np.dot(change, parts.folded.T)  # (N * touched, 9)
        for place in range(count):
            logits = scenes.logits[scene, codes[row, place]].copy()
            for each in range(number):
                cell = touched[each]
                logits[cell] += parts.word[now[cell]] - parts.word[before[cell]]
                for neighbour in range(9):
                    x, y = cell // height + neighbour // 3 - 1, cell % height + neighbour % 3 - 1
                    if 0 <= x < cells // height and 0 <= y < height:
                        logits[x * height + y] += added[place * number + each, neighbour]
            found[row, place] = logits.argmax()


@kernel
def _touch(before, now, parts, context, touched, fresh, height):
    """How many cells lie at changes; fill in which, and what their context adds to the hidden layer now."""
    width, number = len(now) // height, 0
    for cell in range(len(now)):
        x, y = cell // height, cell % height
        near = False
        for neighbour in range(9):
            a, b = x + neighbour // 3 - 1, y + neighbour % 3 - 1
            if 0 <= a < width and 0 <= b < height and before[a * height + b] != now[a * height + b]:
                if not near:
                    fresh[number] = context[cell]
                near = True
                fresh[number] += parts.given[now[a * height + b], neighbour]
                fresh[number] -= parts.given[before[a * height + b], neighbour]
        if near:
            touched[number] = cell
            number += 1
    return number
