"""Skipper's own settings, its presets and its variants."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from skipper.agents.target_config import (
    TargetLearningConfig,
    TargetRunConfig,
    check_environment,
    target_blocks,
    target_values,
)
from skipper.config import PlanningConfig, RunConfig, SkipperGeneratorConfig, WorldConfig
from skipper.presets import Table, shared_preset
from skipper.runtime.checks import check_discounts
from skipper.types import EnvironmentSpec


@dataclass(frozen=True)
class SkipperLearningConfig(TargetLearningConfig):
    """Optimisation of estimators, checkpoint policy and generator."""

    policy_discount: float = 0.95
    """Discount of the intrinsic reward for reaching a target."""
    multistep: bool = False
    """Bootstrap not after one step, but after the first one that the target network's policy would not have taken,
    within the window of all_pairs. Not in the paper."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_discounts(self, "policy_discount")


@dataclass(frozen=True)
class SkipperConfig(TargetRunConfig):
    """A run of Skipper, in any variant."""

    agent: str = "skipper-regen"
    """The agent to train."""
    generator: SkipperGeneratorConfig = field(default_factory=SkipperGeneratorConfig)
    planning: PlanningConfig = field(default_factory=PlanningConfig)
    learning: SkipperLearningConfig = field(default_factory=SkipperLearningConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.learning.hindsight_bound and self.planning.distance_distributions:
            raise ValueError("hindsight_bound bounds the means of distances, so distance_distributions must be off")
        if self.learning.multistep and not self.replay.all_pairs:
            raise ValueError("multistep needs all_pairs")
        if self.planning.max_distance != self.network.bins:
            raise ValueError(
                f"max_distance must be the last of the {self.network.bins} bins, got {self.planning.max_distance:g}"
            )


# What each preset adds to those that all agents with targets share, by block.
ADDED: Table = {
    "fast": {
        "generator": {"generator_every": 4},
        "planning": {
            "checkpoints": 62,
            "prune_vertices": False,
            "cluster_current_state": True,
            "replan": "step",
            "replan_after_exploring": False,
            "edge_length_penalty": 0.03,
            "edge_backups": 3,
            "sweeps": 16,
            "match_observations": True,
        },
        "learning": {"delusion_scale": 0.25, "training_targets": "random"},
    },
}
# Where actions have random effects, beside what all agents with targets do.
STOCHASTIC: Table = {
    "fast": {"learning": {"multistep": True}, "planning": {"distance_distributions": True, "edge_backups": 0}},
}

# What grows with the number of cells, where there are more than in the paper's grids: as many checkpoints per cell, up
# to twice as many, since edges grow with their square, and plans of as many more edges as paths are longer. Edges are
# as local as ever.
SCALED: dict[str, Callable[[int, float], int]] = {
    "checkpoints": lambda count, larger: round(count * min(larger, 2.0)),
    "sweeps": lambda count, larger: round(count * larger**0.5),
}

# Each variant is one strategy: changes of the planning block. When to plan is the preset's choice for all of them.
VARIANTS: dict[str, dict[str, Any]] = {
    "skipper-once": {"regenerate": False},
    "skipper-regen": {"regenerate": True},
    "skipper-goal": {"always_goal": True},
    "skipper-oracle": {"oracle_parts": ("edges", "policy"), "match_observations": True},
}


def skipper_preset(name: str, agent: str, env: str, world: WorldConfig) -> SkipperConfig:
    """The configuration that a run of the variant ``agent`` starts from, in this world."""
    shared, more = shared_preset(name), _added(name, world)
    values = target_values(shared, more) | {
        "agent": agent,
        "env": env,
        "world": world,
        "generator": SkipperGeneratorConfig(**more.get("generator", {})),
        "planning": replace(PlanningConfig(**more.get("planning", {})), **VARIANTS[agent]),
        "learning": SkipperLearningConfig(**vars(shared.learning) | more.get("learning", {})),
    }
    return SkipperConfig(**values)


def _added(name: str, world: WorldConfig) -> dict[str, dict[str, Any]]:
    """What the preset adds to each block, in this world."""
    return target_blocks(name, world, (ADDED, STOCHASTIC), SCALED)


def as_variant(config: RunConfig, agent: str) -> SkipperConfig:
    """The configuration with which the networks of a trained Skipper play as another variant."""
    if not isinstance(config, SkipperConfig) or agent not in VARIANTS:
        wrong = agent if isinstance(config, SkipperConfig) else config.agent
        raise ValueError(
            f"only variants of Skipper play with each other's networks: {', '.join(VARIANTS)}; not {wrong!r}"
        )
    shared_preset(config.preset)  # refuses an unknown preset
    base = PlanningConfig(**_added(config.preset, config.world).get("planning", {}))
    undone = {name: getattr(base, name) for name in VARIANTS[config.agent]}
    return replace(config, agent=agent, planning=replace(config.planning, **(undone | VARIANTS[agent])))


def check(config: RunConfig, spec: EnvironmentSpec) -> None:
    """Refuse an environment that lacks what Skipper needs."""
    assert isinstance(config, SkipperConfig)
    check_environment(config, spec, config.planning.oracle_parts)


def about(config: RunConfig) -> dict[str, str]:
    """What readers of figures and pages should know of this agent."""
    assert isinstance(config, SkipperConfig)
    planning, told = config.planning, dict[str, str]()
    if planning.always_goal or "edges" in planning.oracle_parts:
        return told  # no learned edges are planned with
    if penalty := planning.edge_length_penalty:
        told["edge_length_penalty"] = f"{penalty:g}; an edge of d steps counts {1 - penalty:g} to the power of d * d"
    if backups := planning.edge_backups:
        told["edge_backups"] = f"{backups}; an edge is no shorter than its first step and the rest of the way"
    return told
