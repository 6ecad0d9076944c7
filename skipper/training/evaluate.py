"""Batched evaluation: every task of a set is played once, all of them in lockstep."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from skipper.config import RunConfig
from skipper.envs.registry import Family, TaskSet, find_family
from skipper.types import Agent, Array, Decision, Learner, TimeStep

TRAINING = "training"  # name of the set of training tasks among the evaluation sets


class Episodes(NamedTuple):
    """How each of N episodes ended."""

    success: Array  # (N,) bool, the task was solved
    death: Array  # (N,) bool, terminated without success
    length: Array  # (N,) int64 steps

    @property
    def timeout(self) -> Array:
        """(N,) bool, truncated."""
        return ~(self.success | self.death)

    @property
    def outcomes(self) -> str:
        """N letters, in the order of the tasks: s success, d death, t timeout."""
        return "".join(np.select([self.success, self.death], ["s", "d"], "t").tolist())


class Summary(NamedTuple):
    """Rates over N episodes, the success rate with its 95% Wilson interval."""

    success: float
    low: float
    high: float
    episodes: int
    length: float  # mean steps of all episodes
    deaths: float
    timeouts: float


class Moment(NamedTuple):
    """One step of N episodes in lockstep."""

    running: Array  # (N,) bool, episodes that had not ended before; other rows are to be ignored
    observation: Array  # (N, W, H, C)
    decision: Decision
    reward: Array  # (N,)
    next_observation: Array  # (N, W, H, C) the last observation of the episode where it ended
    terminated: Array  # (N,) bool
    truncated: Array  # (N,) bool

    @property
    def ended(self) -> Array:
        """(N,) bool, episodes that ended with this step."""
        return self.running & (self.terminated | self.truncated)


def rollout(agent: Agent, family: Family, tasks: TaskSet, seed: int) -> Iterator[Moment]:
    """Play one episode of every task; ``seed`` decides the world's randomness, not the agent's."""
    count = len(tasks)
    envs = family.vector_env(count, tasks, tasks.world, one_each=True)
    observation, info = envs.reset(seed=seed)
    first, running = np.ones(count, bool), np.ones(count, bool)
    while running.any():
        decision = agent.act(TimeStep(observation, info["goal"], first, idle=~running))
        before = observation
        observation, reward, terminated, truncated, info = envs.step(decision.action)
        first = terminated | truncated
        after = observation
        if first.any():  # the environment already shows the next episode there
            after = observation.copy()
            after[first] = info["final_obs"][first]
        yield Moment(running.copy(), before, decision, reward, after, terminated, truncated)
        running &= ~first


def play(agent: Agent, family: Family, tasks: TaskSet, seed: int) -> Episodes:
    """How one episode of every task ends; ``seed`` decides the world's randomness, not the agent's."""
    count = len(tasks)
    success, death, length = np.zeros(count, bool), np.zeros(count, bool), np.zeros(count, np.int64)
    for moment in rollout(agent, family, tasks, seed):
        solved = family.success(moment.reward, moment.terminated)
        length += moment.running
        success |= moment.running & solved
        death |= moment.running & moment.terminated & ~solved
    return Episodes(success, death, length)


def evaluate_learner(learner: Learner, config: RunConfig, training: TaskSet | None, step: int) -> dict[str, Summary]:
    """Success on training tasks and on every set of unseen tasks of the run's split, new ones at every ``step``.

    All randomness comes from streams that the run's seed and the step decide, none from the learner.
    """
    family, count = find_family(config.env), config.evaluation.evaluation_episodes
    rng = np.random.default_rng([config.seed, step, *b"evaluate"])
    seed = int(rng.integers(2**32))
    # Training tasks: a random sample, repeated where there are fewer than wanted.
    sample = training.subset(np.resize(rng.permutation(len(training)), count)) if training is not None else None
    sets = {TRAINING: family.training_evaluation(config.world, sample, count, seed)}
    for name in family.evaluation_names(config.world):
        sets[name] = family.evaluation_tasks(config.world, name, count, seed, config.evaluation.split)
    return {name: summarise(play(learner.evaluator(rng), family, tasks, seed)) for name, tasks in sets.items()}


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """The 95% interval of a probability, estimated as ``share`` in ``count`` trials (Wilson 1927)."""
    z = 1.959963984540054  # 0.975 quantile of the normal distribution
    middle = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    return max((middle - half) / scale, 0.0), min((middle + half) / scale, 1.0)


def summarise(episodes: Episodes) -> Summary:
    """Rates and means over the episodes."""
    count, success = len(episodes.success), float(episodes.success.mean())
    low, high = wilson_interval(success, count)
    return Summary(
        success=success,
        low=low,
        high=high,
        episodes=count,
        length=float(episodes.length.mean()),
        deaths=float(episodes.death.mean()),
        timeouts=float(episodes.timeout.mean()),
    )
