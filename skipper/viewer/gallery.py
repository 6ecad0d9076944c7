"""From an agent to the page of its episodes: which ones are shown, and under which names."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from skipper.agents.registry import kind_of
from skipper.config import RunConfig
from skipper.envs.registry import Family, TaskSet, find_family
from skipper.training.load import LoadedAgent
from skipper.types import Array
from skipper.viewer.record import Json, Recording, page_data, record

OUTCOMES = ("success", "death", "timeout")
MOST_TASKS = 400  # tasks that are searched for episodes of every outcome
BATCH = 50


class Gallery(NamedTuple):
    """Episodes for a page, and pictures of them on demand."""

    data: Json
    observations: list[list[Array]]  # of each episode: (W, H, C) per step, and the last
    family: Family

    def pictures(self, index: int) -> list[Array]:
        """(h, w, 3) each: the steps of an episode, and its end."""
        return [self.family.draw(seen) for seen in self.observations[index]]


def episodes_of(loaded: LoadedAgent, tasks: TaskSet, rows: Array, seed: int) -> list[Recording]:
    """The episodes of the tasks ``rows``, named by their numbers."""
    recorded = record(loaded.agent, find_family(loaded.config.env), tasks.subset(rows), seed)
    return [
        recording._replace(episode={"name": f"task {row}", **recording.episode})
        for row, recording in zip(rows, recorded, strict=True)
    ]


def some_of_each(loaded: LoadedAgent, tasks: TaskSet, each: int, seed: int) -> list[Recording]:
    """The first ``each`` successes, deaths and timeouts, or as many as there are among the tasks."""
    found: dict[str, list[Recording]] = {outcome: [] for outcome in OUTCOMES}
    for rows in _batches(len(tasks)):
        for recording in episodes_of(loaded, tasks, rows, seed):
            of_outcome = found[recording.episode["outcome"]]
            if len(of_outcome) < each:
                of_outcome.append(recording)
        if all(len(recordings) == each for recordings in found.values()):
            break
    return [recording for recordings in found.values() for recording in recordings]


def _batches(count: int) -> Iterator[Array]:
    return (np.arange(begin, min(begin + BATCH, count)) for begin in range(0, count, BATCH))


def gallery(
    name: str,
    loaded: LoadedAgent,
    set_name: str | None = None,
    tasks: tuple[int, ...] = (0,),
    each: int | None = None,
    *,
    seed: int = 0,
) -> Gallery:
    """Episodes of unseen ``tasks`` of an evaluation set, by default of the one in the middle.

    With ``each``, instead of the tasks with these numbers this many episodes of every outcome.
    """
    config = loaded.config
    family = find_family(config.env)
    names = family.evaluation_names(config.world)
    set_name = names[len(names) // 2] if set_name is None else set_name
    unseen = family.evaluation_tasks(config.world, set_name, MOST_TASKS if each else max(tasks) + 1, seed)
    shown = some_of_each(loaded, unseen, each, seed) if each else episodes_of(loaded, unseen, np.array(tasks), seed)
    about = _about(config, family) | {family.set_kind: set_name, "seed of the tasks": str(seed)}
    data = page_data(f"{name}: see the agent think", about, family, unseen, [found.episode for found in shown])
    return Gallery(data, [found.observations for found in shown], family)


def _about(config: RunConfig, family: Family) -> dict[str, str]:
    """What readers should know of the agent and its world."""
    describe = kind_of(config).about
    about = {
        "agent": config.agent,
        "trained on": f"{config.tasks} tasks" if config.tasks else "a new task every episode",
        **family.about(config.world),
        **(describe(config) if describe else {}),
    }
    return about
