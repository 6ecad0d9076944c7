"""Layers that the encoder, the selector, the heads and the generator share."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from skipper.runtime.jit import kernel
from skipper.types import Array


@contextmanager
def seeded_initialisation(seed: int) -> Iterator[None]:
    """Modules built inside get weights that ``seed`` decides; the global random state is left as it was."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        yield


def observations_tensor(observation: Array) -> Tensor:
    """(B, W, H, C) as the networks take it, without a copy where that is possible."""
    return torch.from_numpy(np.ascontiguousarray(observation))


class BagOfWords(nn.Module):
    """Each cell becomes the sum of the embeddings of its channels' words (App., "Full State Encoder").

    ``vocabulary`` holds the number of words of each channel. With ``examples`` of observations, the embedding of a word
    starts smaller the more cells of an observation the word fills, and the mean cell starts at 0. Otherwise, after
    later normalisations, what nearly all cells share would outweigh the one cell in which most states differ.
    """

    def __init__(self, vocabulary: Sequence[int], width: int, *, examples: Tensor | None = None) -> None:
        super().__init__()
        self._sizes = tuple(vocabulary)
        self.words = nn.ModuleList(nn.Embedding(count, width) for count in vocabulary)
        if examples is not None:
            self._balance(examples)

    @torch.no_grad()
    def _balance(self, examples: Tensor) -> None:
        """Give every word the same share of an observation's variance, and the mean cell none."""
        for channel, table in enumerate(self._tables()):
            filled = torch.bincount(examples[..., channel].flatten().long(), minlength=len(table)) / len(examples)
            table /= filled.clamp(min=1.0).sqrt()[:, None]
        self._tables()[0].sub_(self(examples).mean((0, 2, 3)))

    def _tables(self) -> list[Tensor]:
        return [cast(nn.Embedding, words).weight for words in self.words]

    def table(self) -> Tensor:
        """(V, width) vectors of all combinations of words, so that each cell needs a single lookup."""
        table, *others = self._tables()
        for words in others:
            table = (table[:, None] + words).flatten(0, 1)
        return table

    def index(self, observation: Tensor) -> Tensor:
        """(B, W, H, C) integers to rows of the table, (B, W, H), on its device."""
        index = torch.from_numpy(self.cell_index(observation.numpy())).view(observation.shape[:3])
        return index.to(self._tables()[0].device)

    def cell_index(self, observation: Array) -> Array:
        """(B, W, H, C) integers to rows of the table, (B, S)."""
        B, W, H, C = observation.shape  # noqa: N806
        index: Array = _cell_index(observation.reshape(B, W * H, C), self._sizes)
        return index

    def used_words(self, observation: Tensor) -> tuple[Array, Tensor]:
        """The words of observations (B, W, H, C), numbered as they occur, (B, S), and their vectors (V, width)."""
        index, table = self.cell_index(observation.numpy()), self.table()
        used = np.flatnonzero(np.bincount(index.ravel(), minlength=len(table)))  # (V,)
        number = np.zeros(len(table), np.int64)
        number[used] = np.arange(len(used))
        return number[index], table[torch.from_numpy(used)]

    def forward(self, observation: Tensor) -> Tensor:
        """(B, W, H, C) integers to (B, width, W, H)."""
        return functional.embedding(self.index(observation), self.table()).permute(0, 3, 1, 2)


@kernel
def _cell_index(words, sizes):
    """(B, S) rows of a table of all combinations of C words with ``sizes`` (C,), for the ``words`` (B, S, C)."""
    index = np.empty(words.shape[:2], np.int64)
    for row in range(len(words)):
        for cell in range(words.shape[1]):
            combined = 0
            for channel in range(len(sizes)):
                word = words[row, cell, channel]
                if word >= sizes[channel]:
                    raise IndexError("an observation holds a word that is not in the vocabulary")
                combined = combined * sizes[channel] + word
            index[row, cell] = combined
    return index


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions through twice the channels, around a skip connection; the grid keeps its size."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.widen = nn.Conv2d(channels, 2 * channels, 3, padding=1)
        self.narrow = nn.Conv2d(2 * channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """(B, channels, W, H) to the same."""
        return x + self.narrow(functional.relu(self.widen(functional.relu(x)), inplace=True))


def mlp(inputs: int, hidden: int, outputs: int, *, scaled: bool = False) -> nn.Sequential:
    """Three linear layers with ReLU between them.

    PyTorch's default weights shrink differences between inputs threefold per layer; ``scaled`` ones (He et al. 2015)
    preserve them, except in the last layer.
    """
    first, second = nn.Linear(inputs, hidden), nn.Linear(hidden, hidden)
    if scaled:
        for layer in (first, second):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), nn.Linear(hidden, outputs))
