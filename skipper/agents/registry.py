"""Agents by name."""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from skipper.agents.fixed import OptimalAgent, RandomAgent
from skipper.types import Agent, Oracle


@dataclass(frozen=True)
class Ingredients:
    """What an agent may be made of; each takes what it needs."""

    actions: int
    rng: np.random.Generator
    oracle: Oracle


AGENTS: dict[str, Callable[[Ingredients], Agent]] = {
    "optimal": lambda given: OptimalAgent(given.oracle),
    "random": lambda given: RandomAgent(given.actions, given.rng),
}


def make_agent(name: str, ingredients: Ingredients) -> Agent:
    """The agent called ``name``."""
    if name not in AGENTS:
        nearest = get_close_matches(name, AGENTS, n=1)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        raise ValueError(f"unknown agent {name!r}; available: {', '.join(sorted(AGENTS))}{hint}")
    return AGENTS[name](ingredients)
