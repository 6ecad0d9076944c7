"""Speed of the lava world, compared with its plain-Python twin in the same run."""

import random
from collections.abc import Callable
from dataclasses import asdict, replace
from time import perf_counter
from typing import Any

import numpy as np

from skipper.benchmarks.plain import draw_plain
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.env import LavaWorldEnv
from skipper.envs.lava.family import LavaOptions
from skipper.envs.lava.layout import Rules, draw_tasks, empty_table
from skipper.envs.lava.oracle import action_values, shortest_distances
from skipper.envs.lava.tasks import training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.envs.rng import stream_states
from skipper.runtime.machine import describe_machine

ENVIRONMENTS = 1024
TASKS = 50


def _rate(work: Callable[[], int], seconds: float) -> float:
    """Units of work per second; the first call, which compiles and warms caches, is not timed."""
    work()
    done, begin = 0, perf_counter()
    while (elapsed := perf_counter() - begin) < seconds:
        done += work()
    return done / elapsed


def _vector_steps(world: LavaConfig) -> Callable[[], int]:
    envs = LavaVectorEnv(ENVIRONMENTS, tasks=training_tasks(world, TASKS, seed=0))
    envs.reset(seed=0)
    actions = np.random.default_rng(0).integers(4, size=(64, ENVIRONMENTS))

    def work() -> int:
        for action in actions:
            envs.step(action)
        return actions.size

    return work


def _single_steps(world: LavaConfig) -> Callable[[], int]:
    env = LavaWorldEnv(tasks=training_tasks(world, TASKS, seed=0))
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(4, size=1000).tolist()

    def work() -> int:
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        return len(actions)

    return work


def _plain_steps(world: LavaConfig) -> Callable[[], int]:
    rng = random.Random(0)
    tasks = [draw_plain(world.width, world.height, world.difficulty, rng) for _ in range(TASKS)]

    def work() -> int:
        plain, cell = rng.choice(tasks)
        for step in range(1000):
            cell = plain.move(cell, rng.randrange(4))
            plain.observe(cell)
            if plain.terminal(cell) or step % world.max_steps == world.max_steps - 1:
                plain, cell = rng.choice(tasks)
        return 1000

    return work


def _layouts(world: LavaConfig) -> Callable[[], int]:
    rules, table = Rules.of(world), empty_table(500, world.cells)
    calls = iter(range(1_000_000_000))
    return lambda: len(draw_tasks(table, stream_states([next(calls)], 500), rules))


def _plain_layouts(world: LavaConfig) -> Callable[[], int]:
    rng = random.Random(0)
    return lambda: len([draw_plain(world.width, world.height, world.difficulty, rng) for _ in range(50)])


def _oracle(world: LavaConfig) -> Callable[[], int]:
    tasks = training_tasks(world, TASKS, seed=0)

    def work() -> int:
        shortest_distances(tasks)
        action_values(tasks)
        return len(tasks)

    return work


def _plain_oracle(world: LavaConfig) -> Callable[[], int]:
    rng = random.Random(0)

    def work() -> int:
        plain, _ = draw_plain(world.width, world.height, world.difficulty, rng)
        for cell in plain.cells:
            plain.distances(cell)
        plain.action_values(plain.goal, 0.99)
        return 1

    return work


def benchmark_world(options: LavaOptions, difficulty: float) -> LavaConfig:
    """The paper's world with ``options`` and another density of lava."""
    return replace(options.changed(LavaConfig()), difficulty=difficulty)


def bench_world(world: LavaConfig, seconds: float) -> dict[str, Any]:
    """Rates per second, and each as a ratio to the plain-Python twin; about ``seconds`` per entry."""
    pairs = {
        "vector_steps": (_vector_steps, _plain_steps),
        "single_steps": (_single_steps, _plain_steps),
        "layouts": (_layouts, _plain_layouts),
        "oracle_tasks": (_oracle, _plain_oracle),
    }
    result: dict[str, Any] = {"machine": describe_machine(), "world": asdict(world), "environments": ENVIRONMENTS}
    for name, (fast, plain) in pairs.items():
        fast_rate, plain_rate = _rate(fast(world), seconds), _rate(plain(world), seconds)
        result[f"{name}_per_s"] = fast_rate
        result[f"{name}_plain_per_s"] = plain_rate
        result[f"{name}_ratio"] = fast_rate / plain_rate
    return result
