"""Where the agent is on a grid, and the same grid with the agent elsewhere."""

import numpy as np

from skipper.runtime import mixed_radix
from skipper.types import Array


class GridScene:
    """Draws imagined states: the agent is in the last channel, everything else stays as it is."""

    def __init__(self, shape: tuple[int, int, int], vocabulary: tuple[int, ...]) -> None:
        self._shape, self._cells = shape, shape[0] * shape[1]
        directions = vocabulary[-1] - 1
        self.parts: tuple[int, ...] = (self._cells,) if directions == 1 else (self._cells, directions)

    def scenery(self, observations: Array) -> Array:
        """(B, W, H, C - 1) everything but the agent."""
        return observations[..., :-1]

    def agent_cell(self, observations: Array) -> Array:
        """(B,) cells of the agents in observations (B, W, H, C)."""
        return self._agent(observations).argmax(-1)

    def goal_cell(self, observations: Array) -> Array:
        """Unknown: only the environment knows its goal."""
        raise ValueError("the goal cannot be read from an observation of this environment; pass goal=info['goal'] too")

    def placement(self, observations: Array) -> Array:
        """(B,) cell and direction of the agents."""
        agent = self._agent(observations)
        return mixed_radix.join(np.stack([agent.argmax(-1), agent.max(-1) - 1], -1)[:, : len(self.parts)], self.parts)

    def place_agent(self, observations: Array, cells: Array) -> Array:
        """(B, N, W, H, C) the scenes of observations (B, W, H, C) with the agent at each of ``cells`` (B, N)."""
        B, N = cells.shape  # noqa: N806
        digits = mixed_radix.split(cells, self.parts)  # (B, N, F)
        direction = digits[..., 1] if len(self.parts) > 1 else np.zeros_like(cells)
        placed = np.repeat(observations[:, None], N, axis=1).reshape(B, N, self._cells, -1)
        placed[..., -1] = 0
        np.put_along_axis(placed[..., -1], digits[..., :1], direction[..., None].astype(np.uint8) + 1, axis=-1)
        return placed.reshape(B, N, *observations.shape[1:])

    def _agent(self, observations: Array) -> Array:
        """(B, S) the last channel."""
        return observations[..., -1].reshape(len(observations), self._cells).astype(np.int64)
