"""What several commands share: world options, evaluation sets, and how agents play them."""

import os
import sys
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import numpy as np
import tyro

from skipper.agents.registry import make_baseline
from skipper.config import RunConfig, Split
from skipper.envs.registry import DEFAULT_FAMILY, Family, TaskSet, find_family
from skipper.training.evaluate import Episodes, Summary, play, summarise
from skipper.types import Agent, EnvironmentSpec

Build = Callable[[EnvironmentSpec, np.random.Generator], Agent]
Command = TypeVar("Command")

# A run folder, or the name of a pretrained agent: ``find_run`` tells which.
RunArgument = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(name="run", metavar="RUN")]
OptionalRunArgument = Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(name="run", metavar="RUN")]
SplitOption = Annotated[Split, tyro.conf.arg(help="Unseen tasks to play: choose on tuning, report on evaluation.")]
MOST_EPISODES = 100_000  # all tasks of a set are in memory and are played in lockstep
# The parser takes the type from the default instance.
WorldOptions = tyro.conf.OmitArgPrefixes[Any]


def default_world() -> Any:
    """World options of the default environment."""
    return find_family(DEFAULT_FAMILY).options_type()


def with_world(command: type[Command], family: Family) -> Command:
    """The defaults of a command with the world options of ``family``, for the parser."""
    entries = fields(cast(Any, command))
    required = [entry.name for entry in entries if entry.default is MISSING and entry.default_factory is MISSING]
    values: dict[str, Any] = dict.fromkeys(required, tyro.MISSING) | {"world": family.options_type()}
    return command(**values)


def changed_world(config: RunConfig, options: Any) -> Any:
    """The world of a run with ``options`` in place of its own; the networks of the run must still fit."""
    family = find_family(config.env)
    if not isinstance(options, family.options_type):
        raise ValueError(f"the run is of the environment {config.env!r}, the options are of another one")
    world = options.changed(config.world)
    before, after = family.spec(config.world), family.spec(world)
    if before[:3] != after[:3]:  # shape, vocabulary and actions
        raise ValueError(
            f"networks are made for observations of one size: those of the run are {before.shape}, "
            f"these options give {after.shape}"
        )
    return world


def evaluation_sets(
    family: Family, world: Any, count: int, seed: int, split: Split = "evaluation"
) -> dict[str, TaskSet]:
    """``count`` unseen tasks of every evaluation set, by its name."""
    if count > MOST_EPISODES:
        raise ValueError(f"--episodes wants at most {MOST_EPISODES:,} tasks per evaluation set, got {count:,}")
    names = family.evaluation_names(world)
    return {name: family.evaluation_tasks(world, name, count, seed, split) for name in names}


def play_sets(agent: Agent | str | Build, family: Family, sets: dict[str, TaskSet], seed: int) -> dict[str, Episodes]:
    """Episodes of every set of tasks, of an agent, or of one that is built anew for every set, such as a baseline."""
    build = partial(make_baseline, agent) if isinstance(agent, str) else agent
    played = {}
    for name, tasks in sets.items():
        rng = np.random.default_rng(seed)
        player = build(family.spec(tasks.world), rng) if callable(build) else build
        played[name] = play(player, family, tasks, seed)
    return played


def summaries(played: dict[str, Episodes]) -> dict[str, Summary]:
    """Rates over the episodes of every set."""
    return {name: summarise(episodes) for name, episodes in played.items()}


def has_screen() -> bool:
    """Whether a browser window can be shown to a user at a terminal."""
    screen = sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return screen and sys.stdout.isatty()
