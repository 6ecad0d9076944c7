"""Observations as MiniGrid draws them, and boards of letters for the viewer."""

from collections.abc import Mapping

import numpy as np
from minigrid.core.constants import COLORS, IDX_TO_COLOR
from minigrid.core.grid import Grid

from skipper.envs.minigrid.things import Things
from skipper.types import Array

TILE = 32  # pixels
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
PLAIN = {"empty": "#000000", "wall": "#646464", "goal": "#00c83c", "lava": "#ff8000"}
_WAVES = "".join(f"M0 {level}q.125 -.1 .25 0t.25 0t.25 0t.25 0" for level in (0.3, 0.5, 0.7))
_KEY = "M.5 .2a.12 .12 0 1 0 .01 0M.5 .44V.85M.5 .7H.65M.5 .82H.65"
_BALL = "M.5 .2a.3 .3 0 1 0 .01 0"
_BOX = "M.15 .15H.85V.85H.15ZM.15 .5H.85"
_DOORS = ("M.08 .04H.2V.96H.08Z", "M.08 .08H.92V.92H.08ZM.7 .5h.1", "M.08 .08H.92V.92H.08ZM.5 .35v.3M.4 .5h.2")
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


def letter_colours(things: Things) -> dict[str, str]:
    """The colour of each letter's cell: doors and what can be moved stand on black."""
    named = zip(letters(things), things.names(), things.codes, strict=True)
    return {letter: PLAIN.get(name, "#000000" if letter in MARKS else _colour(code)) for letter, name, code in named}


def mark_colours(things: Things) -> dict[str, str]:
    """The colours of doors and of what can be moved."""
    named = zip(letters(things), things.names(), things.codes, strict=True)
    return {letter: _colour(code) for letter, name, code in named if letter in MARKS and name not in PLAIN}


def _colour(code: tuple[int, int, int]) -> str:
    red, green, blue = COLORS[IDX_TO_COLOR[code[1]]].tolist()
    return f"#{red:02x}{green:02x}{blue:02x}"


def draw(things: Things, observation: Array, tile: int = TILE) -> Array:
    """(H * tile, W * tile, 3) uint8 picture of an observation (W, H, C)."""
    width, height, channels = observation.shape
    image = np.empty((height * tile, width * tile, 3), np.uint8)
    for x in range(width):
        for y in range(height):
            content, agent = int(observation[x, y, 0]), int(observation[x, y, -1])
            direction = (agent - 1) % 4 if agent else None
            cell = Grid.render_tile(things.object(content), direction, tile_size=tile)
            if agent and channels == 3 and observation[x, y, 1]:  # what is carried, small, in the corner
                carried = things.object(things.carriable()[int(observation[x, y, 1]) - 1])
                cell, small = cell.copy(), Grid.render_tile(carried, tile_size=tile // 2)
                cell[-len(small) :, -len(small) :] = small
            image[y * tile : (y + 1) * tile, x * tile : (x + 1) * tile] = cell
    return image
