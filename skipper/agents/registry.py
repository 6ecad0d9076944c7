"""Agents by name: their settings and presets, and how to build them for training and for acting."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from skipper.agents.baselines import OptimalAgent, RandomAgent
from skipper.agents.director.config import DirectorConfig, director_preset
from skipper.agents.director.config import check as check_director
from skipper.agents.leap.config import VARIANTS as LEAP_VARIANTS
from skipper.agents.leap.config import LeapConfig, leap_preset
from skipper.agents.leap.config import check as check_leap
from skipper.agents.modelfree.config import ModelFreeConfig, modelfree_preset
from skipper.agents.skipper.config import VARIANTS, SkipperConfig, about, as_variant, check, skipper_preset
from skipper.config import RunConfig, WorldConfig
from skipper.runtime.checks import nearest_name
from skipper.types import Agent, Array, EnvironmentSpec, Learner, oracle_of


class Play(Protocol):
    """Builds an agent that acts with saved weights."""

    def __call__(
        self,
        config: Any,
        spec: EnvironmentSpec,
        weights: dict[str, Array],
        rng: np.random.Generator,
        *,
        explain: bool = False,
    ) -> Agent:
        """With ``explain``, decisions also hold what the agent attends to."""


class Builders(NamedTuple):
    """How to build an agent."""

    train: Callable[[Any, EnvironmentSpec], Learner]
    play: Play


@dataclass(frozen=True)
class AgentKind:
    """A learning agent with its own settings, in one variant or in several that share their networks."""

    config_type: type[RunConfig]
    preset: Callable[[str, str, str, WorldConfig], RunConfig]  # of preset, agent, environment and its world
    load: Callable[[], Builders]  # called late: the network library takes a second to import
    as_variant: Callable[[RunConfig, str], RunConfig] | None = None  # the networks of a run play as another agent
    check: Callable[[RunConfig, EnvironmentSpec], None] | None = None  # refuses an environment that does not fit
    about: Callable[[RunConfig], dict[str, str]] | None = None  # what readers of figures and pages should know
    main: tuple[str, ...] = ()  # settings that are changed first, for the help of the command line


def _load_modelfree() -> Builders:
    from skipper.agents.modelfree.agent import ModelFreeAgent, play_modelfree

    return Builders(ModelFreeAgent, play_modelfree)


def _load_skipper() -> Builders:
    from skipper.agents.skipper.agent import SkipperAgent
    from skipper.agents.skipper.policy import play_skipper

    return Builders(SkipperAgent, play_skipper)


def _load_leap() -> Builders:
    from skipper.agents.leap.agent import LeapAgent
    from skipper.agents.leap.policy import play_leap

    return Builders(LeapAgent, play_leap)


def _load_director() -> Builders:
    from skipper.agents.director.agent import DirectorAgent
    from skipper.agents.director.policy import play_director

    return Builders(DirectorAgent, play_director)


_AIDS = ("revisit_penalty", "ensemble")
_LEAP = AgentKind(
    LeapConfig,
    leap_preset,
    _load_leap,
    check=check_leap,
    main=("generator_steps", "subgoals", "timeout", "training_targets", "delusion_scale", *_AIDS),
)
_SKIPPER = AgentKind(
    SkipperConfig,
    skipper_preset,
    _load_skipper,
    as_variant,
    check,
    about,
    main=("checkpoints", "edge_backups", "replan", "training_targets", "delusion_scale", *_AIDS),
)
KINDS: dict[str, AgentKind] = {
    "modelfree": AgentKind(
        ModelFreeConfig,
        modelfree_preset,
        _load_modelfree,
        main=("learning_rate", "batch_size", "steps_per_update", "epsilon_end", *_AIDS),
    ),
    "director": AgentKind(
        DirectorConfig,
        director_preset,
        _load_director,
        check=check_director,
        main=("pictures", "horizon", "skill_duration", "worker_extrinsic", "batch_size", "learning_rate"),
    ),
    **dict.fromkeys(LEAP_VARIANTS, _LEAP),
    **{name: _SKIPPER for name in VARIANTS if name != "skipper-oracle"},
}


def register_agent(name: str, kind: AgentKind) -> None:
    """Make a learning agent known under ``name``."""
    KINDS[name] = kind


def agent_kind(name: str) -> AgentKind:
    """The learning agent called ``name``."""
    if name in BASELINES:
        raise ValueError(f"{name!r} does not learn; trainable: {', '.join(sorted(KINDS))}")
    if name not in KINDS:
        raise ValueError(nearest_name("agent", name, KINDS))
    return KINDS[name]


def kind_of(config: RunConfig) -> AgentKind:
    """The kind of a configuration's agent, also of a variant that plays with trained networks but is never trained."""
    return _SKIPPER if config.agent in VARIANTS else agent_kind(config.agent)


def _skipper_oracle(spec: EnvironmentSpec, rng: np.random.Generator) -> Agent:
    from skipper.agents.skipper.policy import untrained_skipper

    config = skipper_preset("paper", "skipper-oracle", "", WorldConfig(max_steps=spec.longest))
    return untrained_skipper(config, spec, rng)


# Agents that need no training.
BASELINES: dict[str, Callable[[EnvironmentSpec, np.random.Generator], Agent]] = {
    "optimal": lambda spec, _: OptimalAgent(oracle_of(spec)),
    "random": lambda spec, rng: RandomAgent(spec.actions, rng),
    "skipper-oracle": _skipper_oracle,
}


def make_baseline(name: str, spec: EnvironmentSpec, rng: np.random.Generator) -> Agent:
    """The agent called ``name``, which needs no training."""
    if name in KINDS:
        raise ValueError(f"{name!r} must be trained first; give the folder of its run instead")
    if name not in BASELINES:
        raise ValueError(nearest_name("agent", name, BASELINES))
    return BASELINES[name](spec, rng)
