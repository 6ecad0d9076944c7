"""Symmetries of a grid: flips and turns under which moves keep their meaning once actions are renamed."""

from collections.abc import Sequence

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


# East, south, west and north.
DIRECTIONS = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])


def directed_symmetries(width: int, height: int, actions: Sequence[str], values: int) -> Symmetries:
    """The symmetries of a grid whose agent turns: in a mirror image it turns left where it turned right.

    The last channel shows its direction as 1 to 4, in the order of ``DIRECTIONS``; other ``values`` of it stay.
    """
    turns = FLIPS + [flip @ TRANSPOSE for flip in FLIPS] if width == height else FLIPS
    mirrored = {"left": "right", "right": "left"}
    straight = list(range(len(actions)))
    swapped = [list(actions).index(mirrored.get(name, name)) for name in actions]
    turned = np.tile(np.arange(values, dtype=np.uint8), (len(turns), 1))
    for image, turn in enumerate(turns):
        turned[image, 1:5] = 1 + ((DIRECTIONS @ turn.T)[:, None] == DIRECTIONS).all(-1).argmax(-1)
    return Symmetries(
        cells=np.stack([_cells(turn, width, height) for turn in turns]),
        actions=np.array([straight if np.linalg.det(turn) > 0 else swapped for turn in turns]),
        turned=turned,
    )
