"""Agents by name."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

import numpy as np

from skipper.agents.fixed import OptimalAgent, RandomAgent
from skipper.config import RunConfig
from skipper.types import Agent, Array, EnvironmentSpec, Learner, Oracle


@dataclass(frozen=True)
class Ingredients:
    """What an agent that does not learn may be made of; each takes what it needs."""

    actions: int
    rng: np.random.Generator
    oracle: Oracle


class Kind(NamedTuple):
    """An agent that learns: how it is made for training, and how for acting with saved weights."""

    train: Callable[[RunConfig, EnvironmentSpec], Learner]
    play: Callable[[RunConfig, EnvironmentSpec, dict[str, Array], np.random.Generator], Agent]


FIXED: dict[str, Callable[[Ingredients], Agent]] = {
    "optimal": lambda given: OptimalAgent(given.oracle),
    "random": lambda given: RandomAgent(given.actions, given.rng),
}


def _modelfree() -> Kind:
    from skipper.agents.modelfree import ModelFreeAgent, play_modelfree

    return Kind(ModelFreeAgent, play_modelfree)


# Loaded when they are asked for: the network library takes a second to import, and not everyone needs it.
LEARNERS: dict[str, Callable[[], Kind]] = {"modelfree": _modelfree}


def make_fixed(name: str, ingredients: Ingredients) -> Agent:
    """The agent called ``name``, which needs no training."""
    if name in LEARNERS:
        raise ValueError(f"{name!r} must be trained first; give the folder of its run instead")
    if name not in FIXED:
        raise ValueError(unknown("agent", name, FIXED))
    return FIXED[name](ingredients)


def learner_kind(name: str) -> Kind:
    """The learning agent called ``name``."""
    if name in FIXED:
        raise ValueError(f"{name!r} does not learn; trainable: {', '.join(sorted(LEARNERS))}")
    if name not in LEARNERS:
        raise ValueError(unknown("agent", name, LEARNERS))
    return LEARNERS[name]()


def unknown(what: str, name: str, available: Iterable[str]) -> str:
    """The message for a name that is not there, with the nearest one that is."""
    names = sorted(available)
    nearest = get_close_matches(name, names, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return f"unknown {what} {name!r}; available: {', '.join(names)}{hint}"
