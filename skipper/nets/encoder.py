"""The state encoder: observation to full state (App., "Full State Encoder")."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from skipper.nets.layers import BagOfWords, ResidualBlock


class StateEncoder(nn.Module):
    """Bag-of-words embedding and one residual block."""

    def __init__(self, vocabulary: Sequence[int], width: int, *, examples: Tensor | None = None) -> None:
        super().__init__()
        self.embed = BagOfWords(vocabulary, width, examples=examples)
        self.mix = ResidualBlock(width)

    def forward(self, observation: Tensor) -> Tensor:
        """(B, W, H, C) integers to (B, width, W, H).

        The same function as ``plain``. Where cells hold few different words, the block's first convolution is one over
        these words, with its weights folded into their vectors: fewer channels in, and none that needs a gradient.
        """
        index, table = self.embed.index(observation), self.embed.table()
        used = torch.bincount(index.flatten(), minlength=len(table)).nonzero()[:, 0]  # (V,)
        if len(used) >= table.shape[1]:
            return self.plain(observation)
        place = torch.zeros(len(table), dtype=torch.long)
        place[used] = torch.arange(len(used))
        seen = functional.embedding(place[index], torch.eye(len(used)))  # (B, W, H, V), one of them 1
        vectors = table[used]  # (V, width)
        kernel = torch.einsum("ocij,vc->ovij", self.mix.widen.weight, functional.relu(vectors))
        wide = functional.conv2d(seen.permute(0, 3, 1, 2), kernel, self.mix.widen.bias, padding=1)
        return (seen @ vectors).permute(0, 3, 1, 2) + self.mix.narrow(functional.relu(wide, inplace=True))

    def plain(self, observation: Tensor) -> Tensor:
        """The layers one after the other: what ``forward`` is tested against, and the way for many words."""
        encoded: Tensor = self.mix(self.embed(observation))
        return encoded
