"""Where the agent is in an observation, and the same scene with the agent in other cells."""

import numpy as np

from skipper.envs.lava.layout import AGENT, AGENT_COLOUR, EMPTY, GOAL, LAVA, SCENERY_COLOUR, WALL
from skipper.runtime.jit import kernel
from skipper.types import Array, Palette

_UNDER_AGENT = np.full(256, AGENT, np.uint8)  # by the agent's colour
_UNDER_AGENT[AGENT_COLOUR[[EMPTY, WALL, GOAL, LAVA]]] = EMPTY, WALL, GOAL, LAVA


def scenery_of(observation: Array) -> tuple[Array, Array]:
    """(W, H) objects without the agent, and (W, H) bool cells of agents."""
    agent = observation[..., 0] == AGENT
    return np.where(agent, _UNDER_AGENT[observation[..., 1]], observation[..., 0]), agent


class LavaScene:
    """How the lava world draws its agent: turns imagined cells into observations."""

    def scenery(self, observations: Array) -> Array:
        """(B, W, H) objects without the agents: equal for all states of a task, different for different tasks."""
        return scenery_of(observations)[0]

    def agent_cell(self, observations: Array) -> Array:
        """(B,) cells of the agents in observations (B, W, H, C)."""
        return _cell_where(observations[..., 0] == AGENT)

    def goal_cell(self, observations: Array) -> Array:
        """(B,) cells of the goals, also under agents."""
        return _cell_where(self.scenery(observations) == GOAL)

    def place_agent(self, observations: Array, cells: Array) -> Array:
        """(B, N, W, H, C) the scenes of observations (B, W, H, C) with the agent at each of ``cells`` (B, N)."""
        scenery = self.scenery(observations)
        placed = _place(scenery.reshape(len(scenery), -1), cells)
        return placed.reshape(*cells.shape, *observations.shape[1:])


_COLOURS = np.array([(0, 0, 0), (128, 128, 128), (0, 255, 0), (255, 128, 0), (255, 0, 0)], np.uint8)
_CLASS = np.zeros(AGENT + 1, np.int64)
_CLASS[[EMPTY, WALL, GOAL, LAVA, AGENT]] = range(len(_COLOURS))

LAVA_PALETTE = Palette(_COLOURS, lambda observations: _CLASS[observations[..., 0]], agent=int(_CLASS[AGENT]))


@kernel
def _place(scenery, cells):
    """(B, N, S, 2) observations of ``scenery`` (B, S) with the agent at each of ``cells`` (B, N)."""
    placed = np.empty((*cells.shape, scenery.shape[1], 2), np.uint8)
    for row in range(len(scenery)):
        for vertex in range(cells.shape[1]):
            for cell in range(scenery.shape[1]):
                placed[row, vertex, cell, 0] = scenery[row, cell]
                placed[row, vertex, cell, 1] = SCENERY_COLOUR[scenery[row, cell]]
            cell = cells[row, vertex]
            placed[row, vertex, cell, 0] = AGENT
            placed[row, vertex, cell, 1] = AGENT_COLOUR[scenery[row, cell]]
    return placed


def _cell_where(there: Array) -> Array:
    """(B,) the True cell of each of (B, W, H) bool; B may be 0."""
    return there.reshape(len(there), there.shape[1] * there.shape[2]).argmax(-1)
