"""Encoders and decoders of pictures: 64x64 pixels with convolutions, or one pixel per cell with linear layers.

A picture is given as its classes (..., W, H): which colour of the palette each cell has.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from skipper.agents.director.config import WorldModelConfig
from skipper.agents.director.layers import NORM_EPSILON, Dense, few_class_log_softmax, output_layer
from skipper.types import EnvironmentSpec, Palette

PIXELS = 64  # side of a picture
FRAME = 128  # grey around the cells, where their pixels do not fill the picture


def palette_of(spec: EnvironmentSpec) -> Palette:
    """The environment's colours, without which there are no pictures."""
    if spec.palette is None:
        raise ValueError("this agent sees pictures: the environment must offer a Palette")
    return spec.palette


class Colours(nn.Module):
    """Classes of cells as colours."""

    table: Tensor

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self.register_buffer("table", torch.from_numpy(palette.colours.astype("float32") / 255), persistent=False)

    def forward(self, classes: Tensor) -> Tensor:
        """(N, W, H) to (N, W, H, 3) in [0, 1]."""
        return functional.embedding(classes, self.table)


class BalancedClasses(nn.Module):
    """Classes of cells as one-hot vectors, centred and divided by the root of their frequency: rare ones stand out."""

    table: Tensor

    def __init__(self, spec: EnvironmentSpec) -> None:
        super().__init__()
        palette = palette_of(spec)
        count = len(palette.colours)
        if spec.examples is None:  # an agent that plays with saved weights: the table is one of them
            self.register_buffer("table", torch.zeros(count, count))
            return
        seen, cells = torch.from_numpy(palette.classes(spec.examples)).flatten(), spec.shape[0] * spec.shape[1]
        # A class that the examples lack counts as one cell of an observation.
        share = (torch.bincount(seen, minlength=count) / len(seen)).clamp(min=1 / cells)  # (K,)
        self.register_buffer("table", (torch.eye(count) - share) / share.sqrt())

    def forward(self, classes: Tensor) -> Tensor:
        """(N, W, H) to (N, W, H, K)."""
        return functional.embedding(classes, self.table)


class ChannelNorm(nn.LayerNorm):
    """Layer normalisation over the channels of each pixel."""

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to the same."""
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Pixels(nn.Module):
    """Pictures of 64x64 pixels: as many to a cell as fit, in a grey frame."""

    def __init__(self, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.colours = Colours(palette_of(spec))
        self._shape = spec.shape[:2]
        if max(self._shape) > PIXELS:
            cells = " x ".join(map(str, self._shape))
            raise ValueError(f"a picture has {PIXELS} x {PIXELS} pixels, too few for {cells} cells")
        self.zoom = PIXELS // max(self._shape)
        self.first = [(PIXELS - self.zoom * side) // 2 for side in self._shape]  # pixel of the first cell

    def forward(self, classes: Tensor) -> Tensor:
        """(N, W, H) classes to pictures (N, 3, 64, 64), of which the rows are y and the columns x."""
        cells = self.colours(classes).permute(0, 3, 2, 1)  # (N, 3, H, W)
        large = cells.repeat_interleave(self.zoom, 2).repeat_interleave(self.zoom, 3)
        (left, top), (height, width) = self.first, large.shape[2:]
        margins = (left, PIXELS - width - left, top, PIXELS - height - top)
        return functional.pad(large, margins, value=FRAME / 255)

    def cells(self, pictures: Tensor) -> Tensor:
        """Mean colours (N, W, H, 3) of the cells of pictures (N, 3, 64, 64)."""
        (left, top), (W, H) = self.first, self._shape  # noqa: N806
        inner = pictures[:, :, top : top + H * self.zoom, left : left + W * self.zoom]
        return functional.avg_pool2d(inner, self.zoom).permute(0, 3, 2, 1)


class PixelEncoder(nn.Module):
    """Four convolutions that halve the picture: 64, 31, 14, 6, 2."""

    def __init__(self, config: WorldModelConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.pixels = Pixels(spec)
        widths = [3, *(config.picture_depth * 2**layer for layer in range(4))]
        self.layers = nn.Sequential()
        for before, after in pairwise(widths):
            convolution = nn.Conv2d(before, after, 4, stride=2, bias=False)
            nn.init.xavier_uniform_(convolution.weight)
            self.layers.extend([convolution, ChannelNorm(after, eps=NORM_EPSILON), nn.ELU()])
        self.width = 4 * widths[-1]

    def forward(self, classes: Tensor) -> Tensor:
        """(N, W, H) classes to embeddings (N, E)."""
        return self.layers(self.pixels(classes)).flatten(1)


class PixelDecoder(nn.Module):
    """Transposed convolutions: 1, 5, 13, 30, 64; squared errors, summed over the picture."""

    KERNELS = (5, 5, 6, 6)

    def __init__(self, inputs: int, config: WorldModelConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.pixels, self._palette = Pixels(spec), palette_of(spec)
        widths = [inputs, *(config.picture_depth * 2**layer for layer in (2, 1, 0)), 3]
        self.layers = nn.Sequential()
        for layer, kernel in enumerate(self.KERNELS):
            last = layer == len(self.KERNELS) - 1
            convolution = nn.ConvTranspose2d(widths[layer], widths[layer + 1], kernel, stride=2, bias=last)
            nn.init.xavier_uniform_(convolution.weight)
            rest = [nn.Sigmoid()] if last else [ChannelNorm(widths[layer + 1], eps=NORM_EPSILON), nn.ELU()]
            self.layers.extend([convolution, *rest])
            if convolution.bias is not None:
                nn.init.zeros_(convolution.bias)

    def forward(self, features: Tensor) -> Tensor:
        """(N, D) features to pictures (N, 3, 64, 64) in [0, 1]."""
        return self.layers(features[..., None, None])

    def loss(self, features: Tensor, classes: Tensor) -> Tensor:
        """(N,) errors of the pictures of ``classes`` (N, W, H)."""
        return (self(features) - self.pixels(classes)).square().sum((1, 2, 3))

    def classes(self, features: Tensor) -> Tensor:
        """(N, W, H) the colours of the palette that cells are nearest to."""
        return self._errors(features).argmin(-1)

    def agent_cell(self, features: Tensor) -> Tensor:
        """(N,) cells that look most like the agent."""
        return self._errors(features)[..., self._palette.agent].flatten(1).argmin(-1)

    def _errors(self, features: Tensor) -> Tensor:
        """(N, W, H, K) squared distances of the cells' mean colours to those of the palette."""
        cells = self.pixels.cells(self(features))
        return (cells[..., None, :] - self.pixels.colours.table).square().sum(-1)


class CellEncoder(nn.Module):
    """Linear layers on one pixel per cell."""

    def __init__(self, config: WorldModelConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.cells = BalancedClasses(spec) if config.balanced_cells else Colours(palette_of(spec))
        channels = self.cells.table.shape[1]
        widths = [channels * spec.shape[0] * spec.shape[1], *[config.picture_units] * config.picture_layers]
        self.layers = nn.Sequential(*(Dense(before, config.picture_units) for before in widths[:-1]))
        self.width = widths[-1]

    def forward(self, classes: Tensor) -> Tensor:
        """(N, W, H) classes to embeddings (N, E)."""
        return self.layers(self.cells(classes).flatten(1))


class CellDecoder(nn.Module):
    """Linear layers to a class per cell; cross-entropies, summed over the cells."""

    def __init__(self, inputs: int, config: WorldModelConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self._palette, self._shape = palette_of(spec), spec.shape[:2]
        count = len(self._palette.colours)
        widths = [inputs, *[config.picture_units] * config.picture_layers]
        blocks = (Dense(before, config.picture_units) for before in widths[:-1])
        self.layers = nn.Sequential(*blocks, output_layer(widths[-1], spec.shape[0] * spec.shape[1] * count))
        self._agent_weight = config.agent_cell_weight

    def forward(self, features: Tensor) -> Tensor:
        """(N, D) features to logits (N, S, K)."""
        return self.layers(features).unflatten(1, (-1, len(self._palette.colours)))

    def loss(self, features: Tensor, classes: Tensor) -> Tensor:
        """(N,) cross-entropies of ``classes`` (N, W, H)."""
        logits, target = self(features), classes.flatten(1)
        losses = -few_class_log_softmax(logits).gather(-1, target[..., None])[..., 0]  # (N, S)
        if self._agent_weight != 1.0:
            losses = torch.where(target == self._palette.agent, self._agent_weight * losses, losses)
        return losses.sum(1)

    def classes(self, features: Tensor) -> Tensor:
        """(N, W, H) the most likely classes."""
        return self(features).argmax(-1).unflatten(1, self._shape)

    def agent_cell(self, features: Tensor) -> Tensor:
        """(N,) cells that are most likely the agent's."""
        return few_class_log_softmax(self(features))[..., self._palette.agent].argmax(-1)
