"""What a policy with subgoals keeps of each environment from one decision to the next."""

from typing import NamedTuple

import numpy as np

from skipper.agents.leap.subgoals import Chains
from skipper.agents.visits import EpisodeVisits
from skipper.types import CURRENT, Array


class ChainState(NamedTuple):
    """The chains of B environments with M subgoals each, and the episodes so far."""

    state: Array  # (B, M + 2, W, H, C) the state in which the target was chosen, the subgoals and the goal
    distance: Array  # (B, M + 1) from that state to the target, and from each subgoal to the state after it
    aim: Array  # (B,) index of the target in the chain, 0 where there is no chain
    target: Array  # (B, W, H, C)
    steps: Array  # (B,) since the target was chosen
    visited: Array  # (B, T) keys of the episode's states so far
    taken: Array  # (B, T) actions that were chosen there, -1 where there is none yet
    length: Array  # (B,) of the episode so far

    @classmethod
    def empty(cls, environments: int, subgoals: int, shape: tuple[int, int, int], max_steps: int) -> "ChainState":
        """No chains yet, and room for episodes of ``max_steps`` steps."""
        return cls(
            state=np.zeros((environments, subgoals + 2, *shape), np.uint8),
            distance=np.zeros((environments, subgoals + 1)),
            aim=np.zeros(environments, np.int64),
            target=np.zeros((environments, *shape), np.uint8),
            steps=np.zeros(environments, np.int64),
            **EpisodeVisits.empty(environments, max_steps)._asdict(),
        )

    def begin_episodes(self, first: Array) -> None:
        """Forget the chains and the actions of the last episode where a new one begins, (B,) bool."""
        self.visits.begin_episodes(first)
        self.aim[first] = 0

    def take_over(self, rows: Array, chains: Chains) -> None:
        """Follow new chains in the environments ``rows`` (R,)."""
        self.state[rows], self.distance[rows], self.aim[rows] = chains.state, chains.distance, chains.target
        self.target[rows], self.steps[rows] = chains.targets, 0

    def aim_again(self, rows: Array, observation: Array, distance: Array, aim: Array) -> None:
        """Go from current states (R, W, H, C) to the states ``aim`` (R,) of the chains, over a ``distance`` (R,)."""
        self.state[rows, CURRENT], self.distance[rows, 0], self.aim[rows] = observation, distance, aim
        self.target[rows], self.steps[rows] = self.state[rows, aim], 0

    def chains(self, rows: Array, found: Array) -> Chains:
        """The chains of the environments ``rows`` (R,), and whether they were ``found`` just now, (R,) bool."""
        return Chains(self.state[rows], self.distance[rows], self.aim[rows], found)

    @property
    def visits(self) -> EpisodeVisits:
        """The last three columns."""
        return EpisodeVisits(self.visited, self.taken, self.length)
