"""From an agent to the page of its episodes: which are shown, and what they are called."""

from collections.abc import Iterator

import numpy as np

from skipper.envs.lava.tasks import Tasks, evaluation_tasks
from skipper.training.load import LoadedAgent
from skipper.types import Array
from skipper.viewer.record import Json, page_data, record

OUTCOMES = ("success", "death", "timeout")
ENOUGH = 400  # tasks that are looked through, at most, for episodes of every outcome
BATCH = 50


def episodes_of(loaded: LoadedAgent, tasks: Tasks, rows: Array, seed: int) -> list[Json]:
    """The episodes of the tasks ``rows``, named by their numbers."""
    recorded = record(loaded.agent, tasks.subset(rows), seed)
    return [{"name": f"task {row}", **episode} for row, episode in zip(rows, recorded, strict=True)]


def some_of_each(loaded: LoadedAgent, tasks: Tasks, each: int, seed: int) -> list[Json]:
    """The first ``each`` successes, deaths and timeouts, or as many as there are among the tasks."""
    found: dict[str, list[Json]] = {outcome: [] for outcome in OUTCOMES}
    for rows in _batches(len(tasks)):
        for episode in episodes_of(loaded, tasks, rows, seed):
            if len(found[episode["outcome"]]) < each:
                found[episode["outcome"]].append(episode)
        if all(len(episodes) == each for episodes in found.values()):
            break
    return [episode for episodes in found.values() for episode in episodes]


def _batches(count: int) -> Iterator[Array]:
    return (np.arange(begin, min(begin + BATCH, count)) for begin in range(0, count, BATCH))


def gallery(
    name: str, loaded: LoadedAgent, tasks: tuple[int, ...], each: int | None, *, difficulty: float, seed: int
) -> Json:
    """All that the page of some episodes shows: of the ``tasks`` that are named, or ``each`` many of every outcome."""
    config = loaded.config
    count = ENOUGH if each else max(tasks) + 1
    unseen = evaluation_tasks(config.world, difficulty, count, seed)
    named = np.array(tasks)
    episodes = some_of_each(loaded, unseen, each, seed) if each else episodes_of(loaded, unseen, named, seed)
    about = {
        "agent": config.agent,
        "trained on": f"{config.tasks} tasks" if config.tasks else "a new task every episode",
        "difficulty": f"{difficulty:g}",
        "tasks of seed": str(seed),
    }
    if config.world.slip > 0:
        about["slip"] = f"{config.world.slip:g}; true distances and the optimal path are those of an agent in luck"
    if edge_length_penalty := config.planning.edge_length_penalty:
        about["edge_length_penalty"] = (
            f"{edge_length_penalty:g}; an edge of d steps counts {1 - edge_length_penalty:g} to the power of d * d"
        )
    return page_data(f"{name}: see the agent think", about, unseen, episodes)
