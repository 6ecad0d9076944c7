"""Which MiniGrid environments are supported, and what each offers."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from skipper.envs.minigrid.family import MinigridFamily
from skipper.envs.minigrid.things import minigrid_ids
from skipper.types import parts_of


class Entry(NamedTuple):
    """One environment."""

    env_id: str
    reason: str  # why it is refused; empty where it is supported
    goal: bool = False  # whether tasks give their goals; otherwise these are learned
    oracle: bool = False
    table: bool = False  # whether fixed tasks are stepped by transition tables
    states: int | None = None  # of a task; None: too many to list, or random effects
    parts: int = 1  # of what a state is imagined by
    layouts: str = ""


def describe(env_id: str) -> Entry:
    """Try out one environment."""
    try:
        family = MinigridFamily(env_id)
        world = family.world("fast")
        spec, facts = family.spec(world), family.facts
    except (ValueError, RecursionError) as error:
        return Entry(env_id, str(error))
    return Entry(
        env_id,
        "",
        facts.goal,
        family.has_oracle,
        family.has_tables(world),
        facts.states,
        len(parts_of(spec)),
        facts.layouts.describe(),
    )


def catalogue(env_ids: Iterable[str] | None = None) -> Iterator[Entry]:
    """All registered environments, or these."""
    for env_id in minigrid_ids() if env_ids is None else env_ids:
        yield describe(env_id)
