"""The symmetries of a grid: flips and turns, under which moves keep their meaning once they are renamed."""

import numpy as np

from skipper.envs.lava.layout import DX, DY
from skipper.types import Array, Symmetries

FLIPS = [np.diag(signs) for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
TRANSPOSE = np.array([[0, 1], [1, 0]])


def grid_symmetries(width: int, height: int) -> Symmetries:
    """All eight of a square grid, the four flips of another one; the first of them changes nothing."""
    turns = FLIPS + [flip @ TRANSPOSE for flip in FLIPS] if width == height else FLIPS
    return Symmetries(
        cells=np.stack([_cells(turn, width, height) for turn in turns]),
        actions=np.stack([_actions(turn) for turn in turns]),
    )


def _cells(turn: Array, width: int, height: int) -> Array:
    """(S,) for each cell of the turned grid, the cell that it shows."""
    place = np.stack(np.meshgrid(np.arange(width), np.arange(height), indexing="ij"), -1).reshape(-1, 2)
    turned = place @ turn.T
    turned -= turned.min(0)  # flips turn around the origin: shift back into the grid
    shown = np.empty(width * height, np.int64)
    shown[turned[:, 0] * height + turned[:, 1]] = np.arange(width * height)
    return shown


def _actions(turn: Array) -> Array:
    """(A,) the action that moves in the turned direction of each action."""
    steps = np.stack([DX, DY], -1)
    return (steps @ turn.T[None] == steps[:, None]).all(-1).argmax(0)
