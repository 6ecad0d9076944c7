"""What a policy keeps of each environment from one decision to the next."""

from typing import NamedTuple

import numpy as np

from skipper.agents.visits import EpisodeVisits
from skipper.types import Array, Vertices

LONG_AGO = 1_000_000  # steps since the last plan where there was none


class PlanState(NamedTuple):
    """The last plans of B environments with N vertices each, and the episodes so far."""

    vertices: Array  # (B, N, W, H, C) of the last plan
    kept: Array  # (B, N) bool, those that it used
    remaining: Array  # (B, N) bool, those that the episode's later plans may use; none before its first plan
    target: Array  # (B, W, H, C)
    reached_code: Array  # (B,) of the checkpoint reached last among these vertices, -1 where there is none
    steps: Array  # (B,) since the last plan
    aiming: Array  # (B,) bool, whether there is a target
    explored: Array  # (B,) bool, whether the last action was taken at random, without a plan
    visited: Array  # (B, T) keys of the episode's states so far
    taken: Array  # (B, T) actions that were chosen there, -1 where there is none yet
    length: Array  # (B,) of the episode so far

    @classmethod
    def empty(cls, environments: int, vertices: int, shape: tuple[int, int, int], max_steps: int) -> "PlanState":
        """No plans yet, and room for episodes of ``max_steps`` steps."""
        return cls(
            vertices=np.zeros((environments, vertices, *shape), np.uint8),
            kept=np.zeros((environments, vertices), bool),
            remaining=np.zeros((environments, vertices), bool),
            target=np.zeros((environments, *shape), np.uint8),
            reached_code=np.full(environments, -1),
            steps=np.full(environments, LONG_AGO),
            aiming=np.zeros(environments, bool),
            explored=np.zeros(environments, bool),
            **EpisodeVisits.empty(environments, max_steps)._asdict(),
        )

    def begin_episodes(self, first: Array) -> None:
        """Forget the actions and the checkpoints of the last episode where a new one begins, (B,) bool."""
        self.visits.begin_episodes(first)
        self.remaining[first] = False

    def record_problem(self, rows: Array, vertices: Vertices, kept: Array, hidden: Array) -> None:
        """Take over the vertices of new plans of the environments ``rows`` (R,), and which of them were kept (R, N).

        Where these are the first plans with their checkpoints, later plans may use those that were kept, and those
        that were ``hidden`` (R, N) because the agent stood on them.
        """
        new = ~self.remaining[rows].any(-1)
        self.remaining[rows[new]], self.reached_code[rows[new]] = (kept | hidden)[new], -1
        self.vertices[rows], self.kept[rows] = vertices.observation, kept

    @property
    def visits(self) -> EpisodeVisits:
        """The last three columns."""
        return EpisodeVisits(self.visited, self.taken, self.length)
