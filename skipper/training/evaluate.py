"""Batched evaluation: every task of a set is played once, all of them in lockstep."""

from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest

from skipper.envs.tasks import Tasks
from skipper.envs.vector import LavaVectorEnv
from skipper.types import Agent, Array, TimeStep


class Episodes(NamedTuple):
    """How each of N episodes ended."""

    success: Array  # (N,) bool, the goal was entered
    death: Array  # (N,) bool, lava was entered
    length: Array  # (N,) int64 steps

    @property
    def timeout(self) -> Array:
        """(N,) bool, neither happened in time."""
        return ~(self.success | self.death)


class Summary(NamedTuple):
    """Shares of N episodes, the success rate with its 95% Wilson interval."""

    success: float
    low: float
    high: float
    episodes: int
    length: float  # mean steps of all episodes
    deaths: float
    timeouts: float


def play(agent: Agent, tasks: Tasks, seed: int) -> Episodes:
    """One episode of every task; ``seed`` decides the starts and slips of the world, not the agent."""
    count = len(tasks)
    envs = LavaVectorEnv(count, tasks=tasks, assignment="own")
    observation, info = envs.reset(seed=seed)
    first, running = np.ones(count, bool), np.ones(count, bool)
    success, death, length = np.zeros(count, bool), np.zeros(count, bool), np.zeros(count, np.int64)
    while running.any():
        action = agent.act(TimeStep(observation, info["goal"], first)).action
        observation, reward, terminated, truncated, info = envs.step(action)
        length += running
        success |= running & terminated & (reward > 0)
        death |= running & terminated & (reward == 0)
        first = terminated | truncated
        running &= ~first
    return Episodes(success, death, length)


def summarise(episodes: Episodes) -> Summary:
    """Rates and means over the episodes."""
    count = len(episodes.success)
    interval = binomtest(int(episodes.success.sum()), count).proportion_ci(0.95, method="wilson")
    return Summary(
        success=float(episodes.success.mean()),
        low=float(interval.low),
        high=float(interval.high),
        episodes=count,
        length=float(episodes.length.mean()),
        deaths=float(episodes.death.mean()),
        timeouts=float(episodes.timeout.mean()),
    )
