"""Settings and presets of the model-free baseline."""

from dataclasses import dataclass, field, fields

from skipper.config import EstimatorRunConfig, LearningConfig, WorldConfig
from skipper.presets import Table, added, shared_preset
from skipper.replay.windows import WindowConfig


@dataclass(frozen=True)
class ModelFreeLearningConfig(LearningConfig):
    """Optimisation and exploration of the action values."""

    return_bound: bool = False
    """Raise targets to the discounted reward that the episode itself went on to collect, which is possible at least.
    Not in the paper. Valid in deterministic worlds only, and where rewards are not negative."""
    act_with_target_network: bool = False
    """Act in training with the target network, whose partial states stay cached between target updates. Not in the
    paper. Evaluation uses the online network, or its average."""


@dataclass(frozen=True)
class ModelFreeConfig(EstimatorRunConfig):
    """A run of the model-free baseline."""

    learning: ModelFreeLearningConfig = field(default_factory=ModelFreeLearningConfig)
    replay: WindowConfig = field(default_factory=WindowConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.learning.return_bound and not (self.replay.window_episodes and self.world.deterministic):
            raise ValueError("return_bound needs window_episodes and a deterministic world")


# What each preset adds to the one that all agents share, by block. docs/lab_book.md tells how "fast" was tuned.
ADDED: Table = {
    "fast": {
        "learning": {
            "steps_per_update": 9.0,
            "target_update_every": 2_400,
            "learning_rate": 5e-4,
            "warmup_updates": 500,
            "update_clip": 1.0,
            "task_discount": 0.95,
            "return_bound": True,
            "act_with_target_network": True,
        },
        "replay": {"window_episodes": 8, "window_transitions": 12, "window_endings": 0.5},
    },
}
# Where actions have random effects, an episode bounds nothing.
STOCHASTIC: Table = {"fast": {"learning": {"return_bound": False}}}


def modelfree_preset(name: str, agent: str, env: str, world: WorldConfig) -> ModelFreeConfig:
    """The configuration that a run starts from, in this world."""
    shared = shared_preset(name)
    more = added(name, ADDED, *([] if world.deterministic else [STOCHASTIC]))
    values = {entry.name: getattr(shared, entry.name) for entry in fields(shared)} | {
        "agent": agent,
        "env": env,
        "world": world,
        "learning": ModelFreeLearningConfig(**vars(shared.learning) | more.get("learning", {})),
        "replay": WindowConfig(**vars(shared.replay) | more.get("replay", {})),
    }
    return ModelFreeConfig(**values)
