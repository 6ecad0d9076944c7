"""Observations as MiniGrid draws them, and boards of letters for the viewer."""

from collections.abc import Mapping

import numpy as np
from minigrid.core.constants import COLORS, IDX_TO_COLOR
from minigrid.core.grid import Grid
from minigrid.utils.rendering import fill_coords, point_in_circle

from skipper.envs.minigrid.full_grid import ANY_DIRECTION
from skipper.envs.minigrid.things import MOVABLE, Things
from skipper.types import Array

TILE = 32  # pixels
COLOURED = ("door", *MOVABLE)  # drawn on black, in their own colours
# Letters of the things of each kind, one for each colour and state; of doors in the order open, closed, locked.
LETTERS = {
    "empty": ".",
    "wall": "W",
    "floor": "fghijk",
    "door": "ABCDEFHIJKLMNOPQRS",
    "key": "123456",
    "ball": "uvwxyz",
    "box": "!$%&*+",
    "goal": "G",
    "lava": "#",
}
BLACK, ORANGE = "#000000", "#ff8000"
LOCKED = 2  # state of a door
DARK, HALF = 0.45, 0.5  # shares of its colour in which MiniGrid paints a locked door and a floor


def _rectangle(left: float, top: float, right: float, bottom: float, *, hole: bool = False) -> str:
    """An SVG path; holes are drawn the other way round."""
    return f"M{left} {top}" + (f"V{bottom}H{right}V{top}Z" if hole else f"H{right}V{bottom}H{left}Z")


def _frame(outer: float, inner: float) -> str:
    """A square frame between two distances from the cell's edge."""
    hole = _rectangle(inner, inner, 1 - inner, 1 - inner, hole=True)
    return _rectangle(outer, outer, 1 - outer, 1 - outer) + hole


def _disc(x: float, y: float, radius: float, *, hole: bool = False) -> str:
    half = f"a{radius} {radius} 0 0 {int(not hole)}"
    return f"M{x - radius:.3g} {y}{half} {2 * radius} 0{half} {-2 * radius} 0Z"


_WAVES = "".join(f"M.1 {top}l.2 .1l.2 -.1l.2 .1l.2 -.1" for top in (0.3, 0.5, 0.7))
_RING = _disc(0.56, 0.28, 0.19) + _disc(0.56, 0.28, 0.064, hole=True)
_TEETH = _rectangle(0.38, 0.59, 0.5, 0.66) + _rectangle(0.38, 0.81, 0.5, 0.88)
_KEY = _RING + _rectangle(0.5, 0.4, 0.63, 0.88) + _TEETH
_BALL = _disc(0.5, 0.5, 0.31)
_BOX = _frame(0.12, 0.18) + _rectangle(0.16, 0.47, 0.84, 0.53)
_DOORS = (
    _rectangle(0.88, 0, 1, 1) + _rectangle(0.92, 0.04, 0.96, 0.96, hole=True),
    _frame(0, 0.04) + _frame(0.08, 0.12) + _disc(0.75, 0.5, 0.08),
    _frame(0, 0.06) + _rectangle(0.52, 0.5, 0.75, 0.56),
)
MARKS: Mapping[str, str] = (
    {LETTERS["lava"]: _WAVES}
    | dict.fromkeys(LETTERS["key"], _KEY)
    | dict.fromkeys(LETTERS["ball"], _BALL)
    | dict.fromkeys(LETTERS["box"], _BOX)
    | {letter: _DOORS[index % 3] for index, letter in enumerate(LETTERS["door"])}
)


def letters(things: Things) -> list[str]:
    """The letter of each thing."""
    found = []
    for name, (_, colour, state) in zip(things.names(), things.codes, strict=True):
        of_kind = LETTERS[name]
        found.append(of_kind[(3 * colour + state if name == "door" else colour) % len(of_kind)])
    return found


def letter_names(things: Things) -> dict[str, str]:
    """What each letter of a door, or of what can be moved, stands for, such as "locked yellow door"."""
    states = [f"{state} " for state in ("open", "closed", "locked")]
    named = zip(letters(things), things.names(), things.codes, strict=True)
    return {
        letter: f"{states[state] if name == 'door' else ''}{IDX_TO_COLOR[colour]} {name}"
        for letter, name, (_, colour, state) in named
        if name in COLOURED
    }


def letter_colours(things: Things) -> dict[str, str]:
    """The colour of each letter's cell."""
    named = zip(letters(things), things.names(), things.codes, strict=True)
    return {letter: _cell_colour(name, code) for letter, name, code in named}


def mark_colours(things: Things) -> dict[str, str]:
    """The colours of doors and of what can be moved."""
    named = zip(letters(things), things.names(), things.codes, strict=True)
    return {letter: _colour(code) for letter, name, code in named if name in COLOURED}


def _cell_colour(name: str, code: tuple[int, int, int]) -> str:
    if name == "lava":
        return ORANGE
    if name == "floor":
        return _colour(code, HALF)
    if name == "door" and code[2] == LOCKED:
        return _colour(code, DARK)
    return BLACK if name == "empty" or name in COLOURED else _colour(code)


def _colour(code: tuple[int, int, int], share: float = 1.0) -> str:
    red, green, blue = (share * COLORS[IDX_TO_COLOR[code[1]]]).astype(int).tolist()
    return f"#{red:02x}{green:02x}{blue:02x}"


def draw(things: Things, observation: Array, tile: int = TILE) -> Array:
    """(H * tile, W * tile, 3) uint8 picture of an observation (W, H, C)."""
    width, height, channels = observation.shape
    image = np.empty((height * tile, width * tile, 3), np.uint8)
    for x in range(width):
        for y in range(height):
            content, agent = int(observation[x, y, 0]), int(observation[x, y, -1])
            direction = agent - 1 if 0 < agent < ANY_DIRECTION else None
            cell = Grid.render_tile(things.object(content), direction, tile_size=tile).copy()
            if agent == ANY_DIRECTION:
                fill_coords(cell, point_in_circle(0.5, 0.5, 0.33), (255, 0, 0))
            if agent and channels == 3 and observation[x, y, 1]:  # what is carried, small, in the corner
                carried = things.object(things.carriable()[int(observation[x, y, 1]) - 1])
                corner = cell[-tile // 2 :, -tile // 2 :]
                carried.render(corner)
            image[y * tile : (y + 1) * tile, x * tile : (x + 1) * tile] = cell
    return image
