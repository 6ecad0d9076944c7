"""The state encoder: observation to full state (App., "Full State Encoder")."""

from collections.abc import Sequence

from torch import Tensor, nn

from skipper.nets.layers import BagOfWords, ResidualBlock


class StateEncoder(nn.Module):
    """Bag-of-words embedding and one residual block."""

    def __init__(self, vocabulary: Sequence[int], width: int, *, examples: Tensor | None = None) -> None:
        super().__init__()
        self.embed = BagOfWords(vocabulary, width, examples=examples)
        self.mix = ResidualBlock(width)

    def forward(self, observation: Tensor) -> Tensor:
        """(B, W, H, C) integers to (B, width, W, H)."""
        return self.mix(self.embed(observation))
