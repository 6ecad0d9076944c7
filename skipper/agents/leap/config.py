"""Settings, presets and variants of LEAP, adapted to discrete actions as the paper compares it."""

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from skipper.agents.target_config import (
    TargetLearningConfig,
    TargetRunConfig,
    check_environment,
    target_blocks,
    target_values,
)
from skipper.config import GeneratorConfig, RunConfig, WorldConfig
from skipper.planning.cem import SearchConfig
from skipper.presets import Table, shared_preset
from skipper.runtime.checks import check_choice, check_positive
from skipper.types import EnvironmentSpec

ImportanceWeights = Literal["sample", "mean"]
LeapTrainingTargets = Literal["random", "none"]
LeapOraclePart = Literal["edges", "vertices", "policy"]


@dataclass(frozen=True)
class LeapPlanningConfig(SearchConfig):
    """Chains of subgoals, and how the agent follows them."""

    terminal_distance: float = 100.0
    """Length of a segment that starts in a state which is taken for terminal."""
    timeout: int = 8
    """Steps after which the agent chooses again among its subgoals and the goal."""
    exclude_reached: bool = False
    """Do not choose a subgoal again that was just reached. The authors' code may."""
    oracle_parts: tuple[LeapOraclePart, ...] = ()
    """Parts that ground truth replaces (ablations): "edges", distances and terminal states; "vertices", random
    reachable states instead of imagined ones; the "policy" that walks."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "terminal_distance", "timeout")
        for part in self.oracle_parts:
            check_choice("oracle part", part, get_args(LeapOraclePart))


@dataclass(frozen=True)
class LeapLearningConfig(TargetLearningConfig):
    """Optimisation of generator and distances, in two stages."""

    training_targets: LeapTrainingTargets = "none"
    """Where the agent walks in training: with "none" nowhere, all actions are random, as in the paper; or to "random"
    imagined states and sometimes to the goal, as Skipper's preset "fast" does. Only evaluation plans."""
    generator_steps: int = 1_500_000
    """Environment steps of the first stage, in which only the generator learns. They are not charged to the run."""
    importance_weights: ImportanceWeights = "mean"
    """How priorities are corrected for: every "sample" by its own weight, or all by their "mean", which is what the
    authors' code computes. No effect with all_pairs, which has no priorities."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "generator_steps")
        check_choice("importance_weights", self.importance_weights, get_args(ImportanceWeights))
        check_choice("training_targets", self.training_targets, get_args(LeapTrainingTargets))


@dataclass(frozen=True)
class LeapConfig(TargetRunConfig):
    """A run of LEAP, with or without delusion suppression."""

    agent: str = "leap"
    """The agent to train."""
    planning: LeapPlanningConfig = field(default_factory=LeapPlanningConfig)
    learning: LeapLearningConfig = field(default_factory=LeapLearningConfig)


# What each preset adds to those that all agents with targets share, by block.
ADDED: Table = {
    "paper": {"generator": {"entropy_period": 5_000}},
    "debug": {"learning": {"generator_steps": 1_000}},
    "fast": {"learning": {"generator_steps": 100_000}},
}
# Changes of the learning block.
VARIANTS: dict[str, dict[str, Any]] = {"leap": {}, "leap-suppress": {"delusion_scale": 0.25}}


def leap_preset(name: str, agent: str, env: str, world: WorldConfig) -> LeapConfig:
    """The configuration that a run of the variant ``agent`` starts from, in this world."""
    shared, more = shared_preset(name), target_blocks(name, world, (ADDED, {}))
    values = target_values(shared, more) | {
        "agent": agent,
        "env": env,
        "world": world,
        "generator": GeneratorConfig(**more.get("generator", {})),
        "planning": LeapPlanningConfig(),
        "learning": LeapLearningConfig(**vars(shared.learning) | more.get("learning", {}) | VARIANTS[agent]),
    }
    return LeapConfig(**values)


def check(config: RunConfig, spec: EnvironmentSpec) -> None:
    """Refuse an environment that lacks what LEAP needs."""
    assert isinstance(config, LeapConfig)
    check_environment(config, spec, config.planning.oracle_parts)
