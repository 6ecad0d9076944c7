"""A trained agent in two lines, without anything that only training needs."""

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from skipper.agents.registry import KINDS, agent_kind
from skipper.config import RunConfig
from skipper.envs.registry import find_family
from skipper.runtime.checks import nearest_name
from skipper.training.pretrained import find_run
from skipper.training.run_folder import read_config, read_weights
from skipper.training.settings import supported
from skipper.types import Agent, Array, EnvironmentSpec, Plan, TimeStep

Config = TypeVar("Config", bound=RunConfig)


@runtime_checkable
class Planner(Protocol):
    """An agent that can show its plans without acting on them."""

    def plan(self, observation: Array, goal: Array) -> Plan:
        """The plans for observations and goals (B, W, H, C) at the beginning of an episode."""


class LoadedAgent:
    """A trained agent that acts on single observations or on batches of them."""

    def __init__(self, config: RunConfig, spec: EnvironmentSpec, agent: Agent) -> None:
        self.config, self.agent = config, agent
        self._spec = spec
        self._first = True

    def act(self, observation: Array, goal: Array | None = None, first: Array | None = None) -> int | Array:
        """The action for an observation (W, H, C), or the actions (B,) for a batch (B, W, H, C).

        ``goal`` is the goal's observation, ``info["goal"]`` of the environment; without it, it is read from the scene.
        ``first`` (B,) marks the rows of a batch that begin a new episode; by default all rows after ``reset``.
        """
        batch, goals = self._batches(observation, goal)
        first = np.full(len(batch), self._first) if first is None else np.asarray(first, bool)
        self._first = False
        action = self.agent.act(TimeStep(batch, goals, first)).action
        return int(action[0]) if np.ndim(observation) == 3 else action

    def plan(self, observation: Array, goal: Array | None = None) -> Plan:
        """The plans that the agent makes at the beginning of an episode: one for (W, H, C), B for (B, W, H, C).

        The agent's current plan, memory and random stream are not changed.
        """
        if not isinstance(self.agent, Planner):
            raise ValueError(f"{self.config.agent!r} does not plan")
        return self.agent.plan(*self._batches(observation, goal))

    def _batches(self, observation: Array, goal: Array | None) -> tuple[Array, Array]:
        """Observations and goals (B, W, H, C) from one of them or a batch."""
        observation = np.asarray(observation)
        if not np.issubdtype(observation.dtype, np.integer):
            raise ValueError(f"wanted whole numbers, got an observation of {observation.dtype}")
        spec = self._spec
        if observation.shape[-3:] != spec.shape or observation.ndim not in (3, 4):
            raise ValueError(f"wanted an observation {spec.shape} or a batch of them, got {observation.shape}")
        batch = observation.reshape(-1, *spec.shape)
        if goal is not None:
            return batch, np.broadcast_to(goal, batch.shape)
        if spec.scene is None:
            raise ValueError(f"wanted the goal too: the environment {self.config.env!r} has no scene to read it from")
        return batch, spec.scene.place_agent(batch, spec.scene.goal_cell(batch)[:, None])[:, 0]

    def reset(self) -> None:
        """The next observation begins a new episode."""
        self._first = True


def load(
    path: str | Path,
    seed: int = 0,
    agent: str | None = None,
    *,
    step: int | None = None,
    explain: bool = False,
    **settings: Any,
) -> LoadedAgent:
    """The agent of a run folder, the pretrained one with this name, or "hf:USER/NAME" of the hub, as it is evaluated.

    ``seed`` decides its few random actions. ``agent`` names another variant that plays with the networks of the run.
    The networks are the newest, or those that the run keeps of the evaluation at ``step``. With ``explain``, decisions
    also hold what the agent attends to. ``settings`` replace those of the run that matter when it decides:
    ``revisit_penalty`` and ``ensemble``, and for an agent that plans those of its planning, such as ``replan``.
    """
    path = find_run(path)
    config = read_config(path)
    weights = read_weights(path, step)
    kind = agent_kind(config.agent)
    if agent is not None:
        config = as_variant(config, agent)
    config = replace(with_settings(config, settings), device="cpu")
    spec = find_family(config.env).spec(config.world)
    used, _ = supported(config, spec)
    player = kind.load().play(used, spec, weights, np.random.default_rng(seed), explain=explain)
    return LoadedAgent(config, spec, player)


def with_settings(config: Config, settings: Mapping[str, Any]) -> Config:
    """The configuration with other settings of how a trained agent decides."""
    blocks = {name: getattr(config, name) for name in ("decision", "planning") if hasattr(config, name)}
    owner = {entry.name: name for name, block in blocks.items() for entry in fields(block)}
    for name, value in settings.items():
        if name not in owner:
            raise ValueError(nearest_name(f"setting of {config.agent}", name, owner))
        blocks[owner[name]] = replace(blocks[owner[name]], **{name: value})
    return replace(config, **blocks)


def as_variant(config: RunConfig, agent: str) -> RunConfig:
    """The configuration with which the networks of a run play as another agent."""
    convert = agent_kind(config.agent).as_variant
    if convert is None:
        others = ", ".join(sorted(name for name, kind in KINDS.items() if kind.as_variant))
        raise ValueError(
            f"{config.agent!r} has no variants; only variants of one agent share their networks, such as {others}"
        )
    return convert(config, agent)
