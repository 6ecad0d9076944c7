"""Twin of the generator's context and fuser without gradients.

The contributions of every word and every code to the logits are precomputed, so that imagining is lookups and sums,
with one product of small matrices per code.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from skipper.nets.compiled.exact_types import (
    BAG_OF_WORDS,
    RESIDUAL_BLOCK,
    has_exact_types,
    is_intercepted,
    within,
)
from skipper.nets.generator import CheckpointGenerator, Fuser, codes_to_bits
from skipper.runtime.jit import kernel
from skipper.runtime.threads import run_parallel
from skipper.types import Array

BLOCK = 2  # contexts for which a thread of their own pays

TYPES: dict[str, type[nn.Module]] = {
    "": Fuser,
    "spread": nn.Linear,
    "unfold": nn.ConvTranspose2d,
    **within("mix", RESIDUAL_BLOCK),
    "locate": nn.Conv2d,
}


def supports(generator: nn.Module) -> bool:
    """Whether ``CompiledFuser`` computes the same function as the generator, whatever its partial description."""
    if type(generator) is not CheckpointGenerator or is_intercepted(generator):
        return False
    return has_exact_types(generator.context, BAG_OF_WORDS) and has_exact_types(generator.fuse, TYPES)


class Parts(NamedTuple):
    """All contributions of words and codes to the hidden layer of the fuser and to its logits."""

    widened: Array  # (V, 9, C) of words, to the hidden layer of the cells around them
    described: Array  # (codes, C, S) of codes, to the hidden layer
    bias: Array  # (C,)
    folded: Array  # (9, C) of a hidden channel, to the logits of the cells around it
    word: Array  # (V,) of words, to the logit of their cell
    code: Array  # (codes, S) of codes, to the logits


class CompiledFuser:
    """The function of a generator's ``forward`` with the weights that it has at construction."""

    def __init__(self, generator: CheckpointGenerator) -> None:
        self._context = generator.context
        assert isinstance(generator.fuse, Fuser)
        self.parts = _pack(generator.fuse, generator.context.table().detach(), generator.bits)

    def words(self, observation: Tensor) -> Array:
        """(B, W, H, C) integers to the words of all cells, (B, S)."""
        return self._context.cell_index(observation.numpy())

    def __call__(self, observation: Tensor, codes: Tensor) -> Tensor:
        """(B, N, S) logits of the agent's cell for codes (B, N) in the contexts of observations (B, W, H, C)."""
        logits, _ = fuse(self.words(observation), codes.numpy(), self.parts, observation.shape[2])
        return torch.from_numpy(logits)


@torch.no_grad()
def _pack(fuser: Fuser, vectors: Tensor, bits: int) -> Parts:
    """The contributions of words with ``vectors`` (V, width), and of all codes of ``bits`` bits."""
    described = fuser.describe(codes_to_bits(torch.arange(2**bits), bits))
    # Convolutions are linear: the first one splits into a part for the context and a part for the code.
    of_context, of_code = fuser.mix.widen.weight.split(fuser.width, 1)
    of_code = functional.conv2d(functional.relu(described), of_code, padding=1)
    of_context = torch.einsum("ocij,vc->vijo", of_context, functional.relu(vectors))
    word_weight, code_weight = fuser.locate.weight.split(fuser.width, 1)
    (folded, bias), located = fuser.folded(), functional.conv2d(described, code_weight, fuser.locate.bias)
    assert fuser.mix.widen.bias is not None
    packed = (
        of_context.flatten(1, 2),
        of_code.flatten(2),
        fuser.mix.widen.bias,
        folded.T,
        vectors @ word_weight[0, :, 0, 0],
        located.flatten(1) + bias,
    )
    return Parts(*(tensor.contiguous().numpy() for tensor in packed))


def fuse(words: Array, codes: Array, parts: Parts, height: int) -> tuple[Array, Array]:
    """Logits (B, N, S) of the agent's cell for ``codes`` (B, N) in contexts with ``words`` (B, S).

    And the contributions of the contexts to the hidden layer, (B, S, C).
    """
    logits: Array = parts.word[words][:, None] + parts.code[codes]
    contexts = np.empty((*words.shape, len(parts.bias)), np.float32)

    def work(rows: slice) -> None:
        _fuse(words[rows], codes[rows], parts, contexts[rows], logits[rows], height)

    run_parallel(work, len(words), BLOCK)
    return logits, contexts


@kernel
def _fuse(words, codes, parts, contexts, logits, height):
    """Fill ``contexts`` and add the contributions of the hidden layer to ``logits``, in one pass within the cache."""
    channels, cells = parts.described.shape[1:]
    hidden, added = np.empty((channels, cells), np.float32), np.empty((9, cells), np.float32)
    for row in range(len(codes)):
        _widen(words[row], parts.widened, parts.bias, contexts[row], height)
        context = np.ascontiguousarray(contexts[row].T)  # (C, S)
        for column in range(codes.shape[1]):
            described = parts.described[codes[row, column]]
            for channel in range(channels):
                for cell in range(cells):
                    hidden[channel, cell] = max(context[channel, cell] + described[channel, cell], np.float32(0.0))
            np.dot(parts.folded, hidden, added)
            _add_to_neighbours(added, logits[row, column], height)


@kernel
def _widen(words, widened, bias, context, height):
    """Fill ``context`` (S, C): a convolution to which ``words`` (S,) contribute ``widened`` (V, 9, C)."""
    width = len(words) // height
    context[:] = bias
    for x in range(width):
        for y in range(height):
            word = words[x * height + y]
            for i in range(max(x - width + 2, 0), min(x + 2, 3)):
                for j in range(max(y - height + 2, 0), min(y + 2, 3)):
                    total, added = context[(x + 1 - i) * height + y + 1 - j], widened[word, i * 3 + j]
                    for channel in range(len(bias)):
                        total[channel] += added[channel]


@kernel
def _add_to_neighbours(added, logits, height):
    """Add the contributions (9, S) of every cell to itself and its eight neighbours, to ``logits`` (S,)."""
    width = len(logits) // height
    for neighbour in range(9):
        right, down = neighbour // 3 - 1, neighbour % 3 - 1
        for x in range(max(-right, 0), min(width, width - right)):
            for y in range(max(-down, 0), min(height, height - down)):
                logits[(x + right) * height + y + down] += added[neighbour, x * height + y]
