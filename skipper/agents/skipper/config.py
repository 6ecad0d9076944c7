"""Skipper's own settings, its presets and its variants."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from math import ceil, log2
from typing import Any, Literal, get_args

from skipper.config import (
    PAPER_CELLS,
    DecisionConfig,
    GeneratorConfig,
    HindsightConfig,
    LearningConfig,
    PlanningConfig,
    RunConfig,
    WorldConfig,
)
from skipper.presets import shared_preset
from skipper.runtime.checks import check_choice, check_discounts
from skipper.types import EnvironmentSpec

TrainingTargets = Literal["plan", "random"]


@dataclass(frozen=True)
class SkipperLearningConfig(LearningConfig):
    """Optimisation of estimators, checkpoint policy and generator."""

    policy_discount: float = 0.95
    """Discount of the intrinsic reward for reaching a target."""
    delusion_scale: float = 0.0
    """Weight of the distance losses towards imagined states (Alg. 3); the paper's delusion suppression uses 0.25."""
    hindsight_bound: bool = False
    """Bound targets by the episode: a state that it reached k steps later is at most k away, and the path there
    collects at least what the episode collected. Not in the paper. Valid in deterministic worlds only, and where
    shorter paths do not collect less."""
    multistep: bool = False
    """Bootstrap not after one step, but after the first one that the target network's policy would not have taken,
    within the window of all_pairs. Not in the paper."""
    act_with_target_network: bool = False
    """Act in training with the target network, whose partial states stay cached between target updates. Not in the
    paper. Evaluation uses the online network, or its average."""
    training_targets: TrainingTargets = "plan"
    """Where the agent walks in training: to the target of its "plan", as in the paper, or to "random" imagined
    checkpoints and sometimes to the goal, so that only evaluation plans. Hindsight learns from either."""
    updater_process: bool = False
    """With two threads or more, update the estimators in a process of their own, while this one acts, prepares the
    next batches and updates the generator; operations then have one thread less each. The result is, bit for bit,
    that of one process with that many threads. Needs all_pairs and act_with_target_network, since neither priorities
    nor the newest weights are known ahead."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_discounts(self, "policy_discount")
        check_choice("training_targets", self.training_targets, get_args(TrainingTargets))
        if self.delusion_scale < 0:
            raise ValueError(f"delusion_scale must not be negative, got {self.delusion_scale}")


@dataclass(frozen=True)
class SkipperConfig(RunConfig):
    """A run of Skipper, in any variant."""

    agent: str = "skipper-regen"
    """The agent to train."""
    generator: GeneratorConfig = field(default_factory=GeneratorConfig)
    planning: PlanningConfig = field(default_factory=PlanningConfig)
    learning: SkipperLearningConfig = field(default_factory=SkipperLearningConfig)
    replay: HindsightConfig = field(default_factory=HindsightConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        learning, replay = self.learning, self.replay
        if learning.hindsight_bound and not (replay.all_pairs and self.world.deterministic):
            raise ValueError("hindsight_bound needs all_pairs and a deterministic world")
        if learning.hindsight_bound and self.planning.distance_distributions:
            raise ValueError("hindsight_bound bounds the means of distances, so distance_distributions must be off")
        if (learning.multistep or replay.independent_targets) and not replay.all_pairs:
            raise ValueError("multistep and independent_targets need all_pairs")
        if learning.updater_process and not (replay.all_pairs and learning.act_with_target_network):
            raise ValueError("updater_process needs all_pairs and act_with_target_network")
        if self.planning.max_distance != self.network.bins:
            raise ValueError(
                f"max_distance must be the last of the {self.network.bins} bins, got {self.planning.max_distance:g}"
            )

    @property
    def uses_updater_process(self) -> bool:
        """Whether a second process updates the estimators."""
        return self.learning.updater_process and self.threads > 1

    @property
    def network_threads(self) -> int:
        """Threads among which operations of the networks are divided."""
        return self.threads - 1 if self.uses_updater_process else self.threads


# What each preset adds to the one that all agents share, by block.
ADDED: dict[str, dict[str, dict[str, Any]]] = {
    "paper": {},
    "debug": {},
    "fast": {
        "generator": {
            "description_bits": 6,
            "generator_width": 8,
            "flat_description": True,
            "generator_every": 4,
        },
        "planning": {
            "checkpoints": 62,
            "prune_vertices": False,
            "cluster_current_state": True,
            "replan": "step",
            "replan_after_exploring": False,
            "edge_length_penalty": 0.03,
            "sweeps": 16,
            "match_observations": True,
        },
        "learning": {
            "delusion_scale": 0.25,
            "hindsight_bound": True,
            "act_with_target_network": True,
            "training_targets": "random",
            "updater_process": True,
        },
        "replay": {
            "all_pairs": True,
            "pair_episodes": 8,
            "pair_transitions": 12,
            "pair_targets": 8,
            "pair_endings": 0.5,
            "pair_rewarded": 0.5,
            "other_episodes": 0.1,
        },
        "decision": {"revisit_penalty": 0.5},
    },
}
# Where actions have random effects, an episode bounds nothing and its luck misleads, frequent target updates learn
# faster, and to be somewhere again is no mistake.
STOCHASTIC: dict[str, dict[str, dict[str, Any]]] = {
    "fast": {
        "learning": {"hindsight_bound": False, "target_update_every": 2_400, "multistep": True},
        "replay": {"independent_targets": True},
        "planning": {"distance_distributions": True},
        "decision": {"revisit_penalty": 0.0},
    }
}

# What a preset sets grows with the number of cells, where there are more of them than in the paper's grids: as many
# checkpoints and codes for each cell, and plans of as many more edges as paths are longer. Edges are as local as ever.
SCALED: dict[str, Callable[[int, float], int]] = {
    "checkpoints": lambda count, larger: round(count * larger),
    "sweeps": lambda count, larger: round(count * larger**0.5),
    "description_bits": lambda bits, larger: bits + ceil(log2(larger)),
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
    shared = shared_preset(name)

    def added(block: str) -> dict[str, Any]:
        return _added(name, block, world)

    values = {entry.name: getattr(shared, entry.name) for entry in fields(shared)} | {
        "agent": agent,
        "env": env,
        "world": world,
        "generator": GeneratorConfig(**added("generator")),
        "planning": replace(PlanningConfig(**added("planning")), **VARIANTS[agent]),
        "learning": SkipperLearningConfig(**{**vars(shared.learning), **added("learning")}),
        "replay": HindsightConfig(**{**vars(shared.replay), **added("replay")}),
        "decision": DecisionConfig(**added("decision")),
    }
    return SkipperConfig(**values)


def _added(name: str, block: str, world: WorldConfig) -> dict[str, Any]:
    """What the preset adds to a block, in this world."""
    slips = {} if world.deterministic else STOCHASTIC.get(name, {})
    values = ADDED[name].get(block, {}) | slips.get(block, {})
    larger = max(1.0, world.cells / PAPER_CELLS)
    return {
        setting: SCALED[setting](value, larger) if setting in SCALED else value for setting, value in values.items()
    }


def as_variant(config: RunConfig, agent: str) -> SkipperConfig:
    """The configuration with which the networks of a trained Skipper play as another variant."""
    if not isinstance(config, SkipperConfig) or agent not in VARIANTS:
        wrong = agent if isinstance(config, SkipperConfig) else config.agent
        raise ValueError(
            f"only variants of Skipper play with each other's networks: {', '.join(VARIANTS)}; not {wrong!r}"
        )
    shared_preset(config.preset)  # refuses an unknown preset
    base = PlanningConfig(**_added(config.preset, "planning", config.world))
    undone = {name: getattr(base, name) for name in VARIANTS[config.agent]}
    return replace(config, agent=agent, planning=replace(config.planning, **(undone | VARIANTS[agent])))


def check(config: RunConfig, spec: EnvironmentSpec) -> None:
    """Refuse an environment that Skipper cannot do without something of."""
    assert isinstance(config, SkipperConfig)
    if spec.scene is None:
        raise ValueError(
            f"{config.agent!r} draws the states that it imagines and needs a scene; "
            f"the environment {config.env!r} offers none"
        )
    if spec.oracle is None and (parts := config.planning.oracle_parts):
        raise ValueError(
            f"oracle_parts ({', '.join(parts)}) need an oracle; the environment {config.env!r} offers none"
        )


def about(config: RunConfig) -> dict[str, str]:
    """What readers of figures and pages should know of this agent."""
    assert isinstance(config, SkipperConfig)
    penalty = config.planning.edge_length_penalty
    return (
        {"edge_length_penalty": f"{penalty:g}; an edge of d steps counts {1 - penalty:g} to the power of d * d"}
        if penalty
        else {}
    )
