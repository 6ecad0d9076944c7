"""The state encoder: observation to full state (App., "Full State Encoder")."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from skipper.nets.compiled.exact_types import BAG_OF_WORDS, RESIDUAL_BLOCK, has_exact_types
from skipper.nets.layers import BagOfWords, ResidualBlock


class StateEncoder(nn.Module):
    """Bag-of-words embedding and one residual block."""

    def __init__(self, vocabulary: Sequence[int], width: int, *, examples: Tensor | None = None) -> None:
        super().__init__()
        self.embed = BagOfWords(vocabulary, width, examples=examples)
        self.mix = ResidualBlock(width)

    def forward(self, observation: Tensor) -> Tensor:
        """(B, W, H, C) integers to (B, width, W, H): ``mix(embed(observation))``.

        Where cells hold only a few different words, the block's first convolution acts on one-hot words, with their
        vectors folded into its kernel. It then has fewer input channels, and no gradient with respect to its input.
        """
        if not self._can_fold():
            return self._plain(observation)
        words, vectors = self.embed.used_words(observation)  # (B, S), (V, width)
        if len(vectors) >= vectors.shape[1]:
            return self._plain(observation)
        # Encode cells as one-hot vectors of the words that occur.
        cells = torch.from_numpy(words).view(observation.shape[:3])
        one_hot = functional.embedding(cells, torch.eye(len(vectors)))  # (B, W, H, V)
        # The residual block, with the vectors folded into its first convolution.
        kernel = torch.einsum("ocij,vc->ovij", self.mix.widen.weight, functional.relu(vectors))
        wide = functional.conv2d(one_hot.permute(0, 3, 1, 2), kernel, self.mix.widen.bias, padding=1)
        return (one_hot @ vectors).permute(0, 3, 1, 2) + self.mix.narrow(functional.relu(wide, inplace=True))

    def _plain(self, observation: Tensor) -> Tensor:
        encoded: Tensor = self.mix(self.embed(observation))
        return encoded

    def _can_fold(self) -> bool:
        """Whether embedding and block are the ones that folding was written for, not changed ones."""
        return has_exact_types(self.embed, BAG_OF_WORDS) and has_exact_types(self.mix, RESIDUAL_BLOCK)
