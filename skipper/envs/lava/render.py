"""Observations as pictures, in the style of MiniGrid, and as text."""

from functools import lru_cache

import numpy as np

from skipper.envs.lava.layout import EMPTY, GOAL, LAVA, WALL
from skipper.envs.lava.scene import scenery_of
from skipper.types import Array

TILE = 32  # pixels
_SUPERSAMPLING = 3

_BACKGROUND = {EMPTY: (0, 0, 0), WALL: (100, 100, 100), GOAL: (0, 200, 60), LAVA: (255, 128, 0)}
_LETTERS = {EMPTY: ".", WALL: "#", LAVA: "#", GOAL: "G"}


@lru_cache(maxsize=64)
def _tile(thing: int, agent: bool, size: int) -> Array:
    """One cell, (size, size, 3) uint8, drawn large and averaged down for smooth edges."""
    large = size * _SUPERSAMPLING
    y, x = (np.mgrid[0:large, 0:large] + 0.5) / large
    image = np.empty((large, large, 3))
    image[:] = _BACKGROUND[thing]
    if thing == LAVA:
        for level in (0.3, 0.5, 0.7):
            image[np.abs(y - level - 0.06 * np.sin(4 * np.pi * x)) < 0.025] = 0
    image[(x < 0.031) | (y < 0.031)] = 100  # grid lines
    if agent:
        image[(x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.33**2] = (255, 0, 0)
    parts = image.reshape(size, _SUPERSAMPLING, size, _SUPERSAMPLING, 3)
    return parts.mean(axis=(1, 3)).astype(np.uint8)


def render_rgb(observation: Array, tile: int = TILE) -> Array:
    """(H * tile, W * tile, 3) uint8 picture of an observation (W, H, 2)."""
    objects, agent = scenery_of(observation)
    width, height = objects.shape
    image = np.empty((height * tile, width * tile, 3), np.uint8)
    for x in range(width):
        for y in range(height):
            rows, columns = slice(y * tile, (y + 1) * tile), slice(x * tile, (x + 1) * tile)
            image[rows, columns] = _tile(int(objects[x, y]), bool(agent[x, y]), tile)
    return image


def render_text(observation: Array) -> str:
    """One line per row of the grid: ``A`` agent, ``G`` goal, ``#`` lava or wall, ``.`` empty."""
    objects, agent = scenery_of(observation)
    width, height = objects.shape
    letter = [["A" if agent[x, y] else _LETTERS[int(objects[x, y])] for x in range(width)] for y in range(height)]
    return "\n".join("".join(line) for line in letter)
