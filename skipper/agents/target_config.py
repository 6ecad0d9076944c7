"""Settings of agents that imagine states and walk to targets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import ceil, log2
from typing import Any, Literal, get_args

from skipper.config import (
    PAPER_CELLS,
    DecisionConfig,
    EstimatorRunConfig,
    GeneratorConfig,
    LearningConfig,
    RunConfig,
    WorldConfig,
)
from skipper.presets import Table, added
from skipper.replay.relabel import HindsightConfig
from skipper.runtime.checks import check_choice
from skipper.types import EnvironmentSpec

GOAL_FRACTION = 0.25  # of random targets that are the goal

TrainingTargets = Literal["plan", "random", "none"]
DelusionTargets = Literal["imagined", "unseen"]


@dataclass(frozen=True)
class TargetLearningConfig(LearningConfig):
    """Optimisation of estimators for pairs of a state and a target, and how experience is gathered."""

    delusion_scale: float = 0.0
    """Weight of the distance losses towards imagined states (Alg. 3); the paper's delusion suppression uses 0.25."""
    delusion_targets: DelusionTargets = "imagined"
    """Which states these are: whatever is "imagined", as in the paper, most of which can be reached; or only what is
    imagined and "unseen", in which no stored episode was in any symmetric image. Not in the paper. Says little where
    every episode has a new task."""
    hindsight_bound: bool = False
    """Bound targets by the episode: a state that it reached k steps later is at most k away, and the path there
    collects at least what the episode collected. Not in the paper. Valid in deterministic worlds only, and where
    shorter paths do not collect less."""
    act_with_target_network: bool = False
    """Act in training with the target network, whose partial states stay cached between target updates. Not in the
    paper. Evaluation uses the online network, or its average."""
    training_targets: TrainingTargets = "plan"
    """Where the agent walks in training: to the target of its "plan", as in the paper; to "random" imagined states and
    sometimes to the goal, so that only evaluation plans; or to "none": all actions are random, as LEAP's are in the
    paper. Hindsight learns from any of them."""
    updater_process: bool = False
    """With two threads or more, update the estimators in a process of their own, while this one acts, prepares the
    next batches and updates the generator; operations then have one thread less each. The result is, bit for bit,
    that of one process with that many threads. Needs all_pairs, and act_with_target_network unless all actions are
    random, since neither priorities nor the newest weights are known ahead."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("training_targets", self.training_targets, get_args(TrainingTargets))
        check_choice("delusion_targets", self.delusion_targets, get_args(DelusionTargets))
        if self.delusion_scale < 0:
            raise ValueError(f"delusion_scale must not be negative, got {self.delusion_scale}")

    @property
    def acts_with_newest_weights(self) -> bool:
        """Whether actions depend on the last update."""
        return not self.act_with_target_network and self.training_targets != "none"


@dataclass(frozen=True)
class TargetRunConfig(EstimatorRunConfig):
    """A run of an agent that imagines states and walks to targets."""

    generator: GeneratorConfig = field(default_factory=GeneratorConfig)
    learning: TargetLearningConfig = field(default_factory=TargetLearningConfig)
    replay: HindsightConfig = field(default_factory=HindsightConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        learning, replay = self.learning, self.replay
        if learning.hindsight_bound and not (replay.all_pairs and self.world.deterministic):
            raise ValueError("hindsight_bound needs all_pairs and a deterministic world")
        if replay.independent_targets and not replay.all_pairs:
            raise ValueError("independent_targets needs all_pairs")
        if learning.updater_process and (not replay.all_pairs or learning.acts_with_newest_weights):
            raise ValueError("updater_process needs all_pairs, and act_with_target_network or random actions")

    @property
    def uses_updater_process(self) -> bool:
        """Whether a second process updates the estimators."""
        return self.learning.updater_process and self.threads > 1 and self.device == "cpu"

    @property
    def network_threads(self) -> int:
        """Threads among which operations of the networks are divided."""
        return self.threads - 1 if self.uses_updater_process else self.threads


# What these agents add to the presets of all agents, by block.
TARGETS: Table = {
    "fast": {
        "generator": {"description_bits": 6, "generator_width": 8, "flat_description": True},
        "network": {"contrast_start": True},
        "learning": {
            "learning_rate": 2e-3,
            "warmup_updates": 500,
            "update_clip": 1.0,
            "hindsight_bound": True,
            "act_with_target_network": True,
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
# faster, larger steps follow the noise and smaller ones need no clip, and to be somewhere again is no mistake.
STOCHASTIC_TARGETS: Table = {
    "fast": {
        "learning": {
            "hindsight_bound": False,
            "target_update_every": 2_400,
            "learning_rate": 1e-3,
            "update_clip": 0.0,
        },
        "replay": {"independent_targets": True},
        "decision": {"revisit_penalty": 0.0},
    }
}


# Where there are more cells than in the paper's grids, there are as many codes for each cell.
SCALED: dict[str, Callable[[int, float], int]] = {"description_bits": lambda bits, larger: bits + ceil(log2(larger))}


def target_blocks(
    name: str,
    world: WorldConfig,
    tables: tuple[Table, Table],
    scaled: Mapping[str, Callable[[int, float], int]] | None = None,
) -> dict[str, dict[str, Any]]:
    """What the preset ``name`` adds to each block of an agent with targets, in this world.

    The agent's own ``tables`` are what it adds anywhere, and what it adds where actions have random effects; ``scaled``
    are its own settings that grow with the world.
    """
    everywhere, stochastic = tables
    slips = [] if world.deterministic else [STOCHASTIC_TARGETS, stochastic]
    rules, larger = SCALED | dict(scaled or {}), max(1.0, world.cells / PAPER_CELLS)
    return {
        block: {key: rules[key](value, larger) if key in rules else value for key, value in settings.items()}
        for block, settings in added(name, TARGETS, everywhere, *slips).items()
    }


def target_values(shared: EstimatorRunConfig, more: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Fields of a run: those of the ``shared`` preset, and the blocks that all agents with targets extend alike."""
    return {entry.name: getattr(shared, entry.name) for entry in fields(shared)} | {
        "network": replace(shared.network, **more.get("network", {})),
        "replay": HindsightConfig(**vars(shared.replay) | more.get("replay", {})),
        "decision": DecisionConfig(**more.get("decision", {})),
    }


def check_environment(config: RunConfig, spec: EnvironmentSpec, oracle_parts: Sequence[str]) -> None:
    """Refuse an environment that lacks what the agent needs."""
    if spec.scene is None:
        raise ValueError(
            f"{config.agent!r} draws the states that it imagines and needs a scene; "
            f"the environment {config.env!r} offers none"
        )
    if not spec.gives_goals and not getattr(getattr(config, "generator", None), "learned_goal", False):
        raise ValueError(
            f"{config.agent!r} must be given the goal of every task, which the environment {config.env!r} does not do; "
            f"agents of Skipper learn it instead"
        )
    if spec.oracle is None and oracle_parts:
        raise ValueError(
            f"oracle_parts ({', '.join(oracle_parts)}) need an oracle; the environment {config.env!r} offers none"
        )
