"""Batched evaluation: every task of a set is played once, all of them in lockstep."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from skipper.config import RunConfig, Start
from skipper.envs.lava.tasks import Tasks, evaluation_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.types import Agent, Array, Learner, TimeStep


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


def play(agent: Agent, tasks: Tasks, seed: int, start: Start = "fixed") -> Episodes:
    """One episode of every task, from its own start unless "uniform" ones are asked for.

    ``seed`` decides the starts and slips of the world, not the agent.
    """
    tasks = Tasks(replace(tasks.world, start=start), tasks.table)
    count = len(tasks)
    envs = LavaVectorEnv(count, tasks=tasks, assignment="own")
    observation, info = envs.reset(seed=seed)
    first, running = np.ones(count, bool), np.ones(count, bool)
    success, death, length = np.zeros(count, bool), np.zeros(count, bool), np.zeros(count, np.int64)
    while running.any():
        action = agent.act(TimeStep(observation, info["goal"], first, idle=~running)).action
        observation, reward, terminated, truncated, info = envs.step(action)
        length += running
        success |= running & terminated & (reward > 0)
        death |= running & terminated & (reward == 0)
        first = terminated | truncated
        running &= ~first
    return Episodes(success, death, length)


def evaluate_learner(learner: Learner, config: RunConfig, training: Tasks | None, step: int) -> dict[str, Summary]:
    """Success on training tasks and on unseen tasks of every difficulty, new ones at every ``step``.

    All randomness is drawn from streams that only the run's seed and the step decide, none of the learner's.
    """
    settings = config.evaluation
    rng = np.random.default_rng([config.seed, step, *b"evaluate"])
    seed = int(rng.integers(2**32))
    sets = {"training": _training_sample(config, training, rng, seed)}
    for level in settings.difficulties:
        sets[f"{level:g}"] = evaluation_tasks(
            config.world, level, settings.evaluation_episodes, seed, spread=settings.difficulty_spread
        )
    results = {}
    for name, tasks in sets.items():
        start = settings.training_task_start if name == "training" else "fixed"
        results[name] = summarise(play(learner.evaluator(rng), tasks, seed, start))
    return results


def _training_sample(config: RunConfig, training: Tasks | None, rng: np.random.Generator, seed: int) -> Tasks:
    """Some of the training tasks, or tasks like them where every episode brings a new one."""
    count = config.evaluation.evaluation_episodes
    world = config.world
    if training is None:
        return evaluation_tasks(world, world.difficulty, count, seed, spread=world.spread, split="stream")
    return training.subset(np.resize(rng.permutation(len(training)), count))


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """The 95% interval of a probability of which ``share`` was seen in ``count`` trials (Wilson 1927)."""
    z = 1.959963984540054  # the normal distribution's 0.975 quantile
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
