"""Settings and presets of the model-free baseline."""

from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from skipper.config import LearningConfig, RunConfig, WindowConfig, WorldConfig, check_choice
from skipper.presets import shared_preset

ReturnBound = Literal["none", "episode", "window"]


@dataclass(frozen=True)
class ModelFreeLearningConfig(LearningConfig):
    """Optimisation and exploration of the action values."""

    return_bound: ReturnBound = "none"
    """Raise targets to a return that the episode proves possible: the reward that it collected until its end
    ("episode"), also by way of what the target network expects later in the window ("window"). Not in the paper. Valid
    in deterministic worlds without negative rewards. Needs windows."""
    act_with_target_network: bool = False
    """Act in training with the target network, whose partial states stay cached between target updates. Not in the
    paper. Evaluation uses the online network, or its average."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("return_bound", self.return_bound, get_args(ReturnBound))


@dataclass(frozen=True)
class ModelFreeConfig(RunConfig):
    """A run of the model-free baseline."""

    learning: ModelFreeLearningConfig = field(default_factory=ModelFreeLearningConfig)
    replay: WindowConfig = field(default_factory=WindowConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.learning.return_bound != "none" and not (self.replay.window_episodes and self.world.deterministic):
            raise ValueError("return_bound needs windows (window_episodes) and a deterministic world")


# What each preset adds to the one that all agents share, by block. docs/lab_book.md tells how "fast" was tuned.
ADDED: dict[str, dict[str, dict[str, Any]]] = {
    "paper": {},
    "debug": {},
    "fast": {
        "learning": {
            "epsilon_end": 0.4,
            "learning_rate": 1e-3,
            "target_update_every": 2_400,
            "steps_per_update": 12.0,
            "return_bound": "episode",
            "act_with_target_network": True,
        },
        "replay": {"window_episodes": 8, "window_transitions": 12, "window_endings": 0.5},
    },
}
# Where actions have random effects, an episode bounds nothing.
STOCHASTIC: dict[str, dict[str, Any]] = {"fast": {"return_bound": "none"}}


def modelfree_preset(name: str, agent: str, env: str, world: WorldConfig) -> ModelFreeConfig:
    """The configuration that a run starts from, in this world."""
    shared, added = shared_preset(name), ADDED[name]
    learning = added.get("learning", {}) | ({} if world.deterministic else STOCHASTIC.get(name, {}))
    values = {entry.name: getattr(shared, entry.name) for entry in fields(shared)} | {
        "agent": agent,
        "env": env,
        "world": world,
        "learning": ModelFreeLearningConfig(**{**vars(shared.learning), **learning}),
        "replay": WindowConfig(**{**vars(shared.replay), **added.get("replay", {})}),
    }
    return ModelFreeConfig(**values)
