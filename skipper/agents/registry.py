"""Agents by name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from skipper.agents.baselines import OptimalAgent, RandomAgent
from skipper.config import RunConfig, nearest_name
from skipper.presets import preset
from skipper.types import Agent, Array, EnvironmentSpec, Learner, oracle_of


@dataclass(frozen=True)
class Ingredients:
    """What an agent that does not learn may be made of; each takes what it needs."""

    spec: EnvironmentSpec
    rng: np.random.Generator


class Play(Protocol):
    """How an agent is made that acts with saved weights."""

    def __call__(
        self,
        config: RunConfig,
        spec: EnvironmentSpec,
        weights: dict[str, Array],
        rng: np.random.Generator,
        *,
        explain: bool = False,
        ensemble: int = 1,
    ) -> Agent:
        """Asked to ``explain``, its decisions say all that can be shown of them.

        What it expects is the mean over an ``ensemble`` of symmetric images of what it sees.
        """


class Kind(NamedTuple):
    """An agent that learns: how it is made for training, and how for acting with saved weights."""

    train: Callable[[RunConfig, EnvironmentSpec], Learner]
    play: Play


def _skipper_oracle(given: Ingredients) -> Agent:
    from skipper.agents.skipper.policy import untrained_skipper

    return untrained_skipper(preset("paper", "skipper-oracle"), given.spec, given.rng)


FIXED: dict[str, Callable[[Ingredients], Agent]] = {
    "optimal": lambda given: OptimalAgent(oracle_of(given.spec)),
    "random": lambda given: RandomAgent(given.spec.actions, given.rng),
    "skipper-oracle": _skipper_oracle,
}


def _modelfree() -> Kind:
    from skipper.agents.modelfree import ModelFreeAgent, play_modelfree

    return Kind(ModelFreeAgent, play_modelfree)


def _skipper() -> Kind:
    from skipper.agents.skipper.agent import SkipperAgent
    from skipper.agents.skipper.policy import play_skipper

    return Kind(SkipperAgent, play_skipper)


# Loaded when they are asked for: the network library takes a second to import, and not everyone needs it.
LEARNERS: dict[str, Callable[[], Kind]] = {
    "modelfree": _modelfree,
    "skipper-goal": _skipper,
    "skipper-once": _skipper,
    "skipper-regen": _skipper,
}


def make_fixed(name: str, ingredients: Ingredients) -> Agent:
    """The agent called ``name``, which needs no training."""
    if name in LEARNERS:
        raise ValueError(f"{name!r} must be trained first; give the folder of its run instead")
    if name not in FIXED:
        raise ValueError(nearest_name("agent", name, FIXED))
    return FIXED[name](ingredients)


def learner_kind(name: str) -> Kind:
    """The learning agent called ``name``."""
    if name in FIXED:
        raise ValueError(f"{name!r} does not learn; trainable: {', '.join(sorted(LEARNERS))}")
    if name not in LEARNERS:
        raise ValueError(nearest_name("agent", name, LEARNERS))
    return LEARNERS[name]()
