"""Where the agent is in an observation, and the same scene with the agent elsewhere."""

import numpy as np

from skipper.envs.lava import AGENT, AGENT_COLOUR, GOAL, SCENERY_COLOUR
from skipper.envs.render import scenery_of
from skipper.types import Array


class LavaScene:
    """Knows how the lava world draws its agent; networks that imagine a cell are given a picture by it."""

    def scenery(self, observations: Array) -> Array:
        """(B, W, H) objects without the agents: equal for all states of a task, different for different tasks."""
        return scenery_of(observations)[0]

    def agent_cell(self, observations: Array) -> Array:
        """(B,) cells of the agents in observations (B, W, H, C)."""
        return _cell_where(observations[..., 0] == AGENT)

    def goal_cell(self, observations: Array) -> Array:
        """(B,) cells of the goals, also where agents stand on them."""
        return _cell_where(self.scenery(observations) == GOAL)

    def place_agent(self, observations: Array, cells: Array) -> Array:
        """(B, N, W, H, C) the scenes of observations (B, W, H, C) with the agent at each of ``cells`` (B, N)."""
        B, N = cells.shape  # noqa: N806
        objects, _ = scenery_of(observations)
        objects = objects.reshape(B, -1)
        scenes = np.stack([objects, SCENERY_COLOUR[objects]], -1)  # (B, S, 2)
        placed = np.repeat(scenes[:, None], N, axis=1)  # (B, N, S, 2)
        problem, vertex = np.indices((B, N))
        placed[problem, vertex, cells, 1] = AGENT_COLOUR[objects[problem, cells]]
        placed[problem, vertex, cells, 0] = AGENT
        return placed.reshape(B, N, *observations.shape[1:])


def _cell_where(there: Array) -> Array:
    """(B,) the cell that is true in each of (B, W, H) bool; B may be 0."""
    return there.reshape(len(there), there.shape[1] * there.shape[2]).argmax(-1)
