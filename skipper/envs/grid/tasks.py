"""Tasks are seeds: each draws one layout. Seeds of different splits never coincide, and neither do their layouts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from skipper.envs.grid.config import GridConfig
from skipper.envs.grid.playable import Playable
from skipper.envs.grid.probe import SPLITS, Layouts
from skipper.envs.rng import stream_states
from skipper.types import Array

MOST_DRAWS = 2_000  # seeds to try for one task
WHOLE = Layouts(None, with_start=True, divided=False)  # tasks are different where first observations are


@dataclass(frozen=True)
class SeedTasks:
    """N fixed tasks of one environment."""

    world: GridConfig
    seeds: Array  # (N,) int64

    def __len__(self) -> int:
        return len(self.seeds)

    def subset(self, rows: Sequence[int] | Array) -> "SeedTasks":
        """The tasks at ``rows``, in that order."""
        return SeedTasks(self.world, self.seeds[np.asarray(rows, np.int64)])


def seed_in_split(word: int, split: str) -> int:
    """A seed of the split from 64 random bits: which split it belongs to is its remainder by 4."""
    return (word >> 34) * 4 + SPLITS.index(split)


def draw_seeds(env: Playable, layouts: Layouts, split: str, entropy: Sequence[int]) -> Iterator[tuple[int, Array]]:
    """Seeds of a split, and the first observations of their tasks, without end."""
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}; available: {', '.join(SPLITS)}")
    failures, block = 0, 0
    while True:
        for word in stream_states([*entropy, SPLITS.index(split), block], 256).tolist():
            seed = seed_in_split(word, split)
            observation = env.reset(seed)
            if layouts.belongs(observation, split):
                failures = 0
                yield seed, observation
            failures += 1
            if failures > MOST_DRAWS:
                raise ValueError(f"found no layout of the split {split!r} in {MOST_DRAWS:,} draws")
        block += 1


def training_tasks(env: Playable, layouts: Layouts, world: GridConfig, count: int, seed: int) -> SeedTasks:
    """``count`` different training tasks; another seed gives another set."""
    found: dict[int, int] = {}
    for draws, (task, observation) in enumerate(draw_seeds(env, layouts, "training", [seed])):
        found.setdefault(WHOLE.content(observation), task)
        if len(found) == count:
            return SeedTasks(world, np.array(list(found.values()), np.int64))
        if draws > 100 * count + MOST_DRAWS:
            break
    raise ValueError(
        f"wanted {count} different training tasks, but the environment gave only {len(found)}; "
        f"use --tasks {len(found)}, or --tasks 0 for a new one every episode"
    )


def unseen_tasks(
    env: Playable, layouts: Layouts, world: GridConfig, count: int, entropy: list[int], split: str
) -> SeedTasks:
    """``count`` tasks of a split, which may repeat where its layouts are few."""
    drawn = draw_seeds(env, layouts, split, entropy)
    return SeedTasks(world, np.array([next(drawn)[0] for _ in range(count)], np.int64))
