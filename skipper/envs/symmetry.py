"""Symmetries of a grid: flips and turns under which moves keep their meaning once actions are renamed."""

import numpy as np

from skipper.types import Array, Symmetries

FLIPS = [np.diag(signs) for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
TRANSPOSE = np.array([[0, 1], [1, 0]])


def grid_symmetries(width: int, height: int, moves: Array) -> Symmetries:
    """Those of the eight symmetries of a square, four of a rectangle, that map every move to a move.

    ``moves`` (A, 2) holds the step of each action along x and y. The first symmetry is the identity.
    """
    turns = FLIPS + [flip @ TRANSPOSE for flip in FLIPS] if width == height else FLIPS
    renamed = {index: _actions(turn, moves) for index, turn in enumerate(turns)}
    kept = {index: actions for index, actions in renamed.items() if actions is not None}
    return Symmetries(
        cells=np.stack([_cells(turns[index], width, height) for index in kept]),
        actions=np.stack(list(kept.values())),
    )


def _cells(turn: Array, width: int, height: int) -> Array:
    """(S,) for each cell of the turned grid, the cell of the original that it shows."""
    position = np.stack(np.meshgrid(np.arange(width), np.arange(height), indexing="ij"), -1).reshape(-1, 2)
    turned = position @ turn.T
    turned -= turned.min(0)  # turns are around the origin: shift back into the grid
    shown = np.empty(width * height, np.int64)
    shown[turned[:, 0] * height + turned[:, 1]] = np.arange(width * height)
    return shown


def _actions(turn: Array, moves: Array) -> Array | None:
    """(A,) the action that moves in the turned direction of each action; None where there is none."""
    same = ((moves @ turn.T)[:, None] == moves).all(-1)  # (A, A)
    return same.argmax(-1) if same.any(-1).all() else None
