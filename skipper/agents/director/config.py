"""Settings and presets of Director: the defaults of its public code, with the paper's changes (App., "Director")."""

from dataclasses import dataclass, field
from typing import Literal, get_args

from skipper.config import RunConfig, ScheduleConfig, StoreConfig, WorldConfig
from skipper.presets import Table, added, common_values
from skipper.runtime.checks import check_choice, check_discounts, check_positive, check_shares
from skipper.types import EnvironmentSpec

Pictures = Literal["pixels", "cells"]
GoalReward = Literal["arrival", "pursued"]
ManagerReward = Literal["mean", "sum"]
WorkerWeight = Literal["piece", "rollout"]


@dataclass(frozen=True)
class WorldModelConfig:
    """The recurrent state-space model and its heads."""

    pictures: Pictures = "pixels"
    """What is observed and predicted: "pixels", 64x64 with convolutions and squared errors, as in the paper; or
    "cells", one pixel per cell with linear layers, whose prediction is a colour of the palette per cell."""
    picture_layers: int = 2
    """Layers of encoder and decoder for cells."""
    picture_units: int = 256
    """Width of these layers."""
    picture_depth: int = 64
    """Channels of the first convolution for pixels; each further one has twice as many."""
    balanced_cells: bool = False
    """Show cells as classes that count the same however few cells have them, instead of as colours: the agent is one
    cell of many, and of almost the colour of lava. Not in the paper; no effect with pixels."""
    agent_cell_weight: float = 1.0
    """Weight of the losses of cells that show the agent, which is one cell among many. Not in the paper; no effect
    with pixels."""
    deterministic: int = 1024
    """Width of the deterministic state, in which goals are set."""
    units: int = 1024
    """Width of the layers around it."""
    latents: int = 32
    """Categorical variables of the stochastic state."""
    latent_classes: int = 32
    """Classes of each of them."""
    head_layers: int = 4
    """Layers of the heads for reward and continuation."""
    head_units: int = 512
    """Width of these layers."""
    kl_target: float = 3.5
    """Divergence of posterior and prior, in nats, that the weight of its loss adapts to."""
    kl_scale: float = 0.0
    """A fixed weight instead; 0: adaptive."""
    kl_balance: float = 0.8
    """Share of the divergence's gradient that the prior gets; the posterior gets the rest."""

    def __post_init__(self) -> None:
        check_choice("pictures", self.pictures, get_args(Pictures))
        check_positive(self, "picture_units", "picture_depth", "agent_cell_weight", "deterministic", "units", "latents")
        check_positive(self, "latent_classes", "head_units", "kl_target")
        check_shares(self, "kl_balance")


@dataclass(frozen=True)
class GoalConfig:
    """The goal autoencoder."""

    codes: int = 8
    """Categorical variables of a skill, which the manager chooses and the decoder turns into a goal."""
    code_classes: int = 8
    """Classes of each of them."""
    goal_layers: int = 4
    """Layers of encoder and decoder."""
    goal_units: int = 512
    """Width of these layers."""
    goal_kl_target: float = 10.0
    """Divergence of codes from uniform ones, in nats, that the weight of its loss adapts to."""

    def __post_init__(self) -> None:
        check_positive(self, "codes", "code_classes", "goal_units", "goal_kl_target")


@dataclass(frozen=True)
class BehaviourConfig:
    """Manager and worker, trained in imagination. By default switches behave as the public code does."""

    horizon: int = 8
    """Imagined steps."""
    skill_duration: int = 4
    """Steps between two choices of the manager; divides the horizon."""
    starts: int = 0
    """States of a batch to imagine from, drawn at random; 0: all of them, as in the public code."""
    policy_layers: int = 4
    """Layers of actors and critics."""
    policy_units: int = 512
    """Width of these layers."""
    manager_extrinsic: float = 1.0
    """Weight of the task's reward for the manager."""
    manager_exploration: float = 0.1
    """Weight of the errors of the goal autoencoder for the manager."""
    worker_extrinsic: float = 0.5
    """Weight of the task's reward for the worker. The public code has 0."""
    worker_goal: float = 1.0
    """Weight of the similarity to the goal for the worker."""
    behaviour_discount: float = 0.99
    """Discount of a step, for the manager of one of its choices."""
    return_lambda: float = 0.95
    """Share of the longer returns in lambda-returns."""
    entropy_target: float = 0.5
    """Share of the largest entropy that the weights of the actors' entropies adapt to."""
    uniform_mix: float = 0.01
    """Share of uniform probabilities in every policy."""
    slow_critic_every: int = 100
    """Updates between copies of a critic to the slow one that bootstraps and serves as baseline."""
    goal_reward: GoalReward = "arrival"
    """The goal to which an imagined state is compared: that of its "arrival", which is a new one after every
    skill_duration steps (the public code), or the one that was "pursued"."""
    manager_reward: ManagerReward = "mean"
    """Rewards between two choices of the manager count as their "mean" (the public code) or "sum"."""
    worker_weight: WorkerWeight = "piece"
    """How the worker weighs imagined steps: by continuation and discount since the start of their "piece" of
    skill_duration steps (the public code, which so goes on learning from steps after a death), or since the start of
    the whole "rollout"."""
    endless_intrinsic: bool = False
    """Let returns of goal similarity and novelty go on beyond the end of an episode (as Burda et al. 2019 do with
    theirs). In the public code they end with it, so that a worker that solves its task loses all that it could have
    collected."""
    new_goal_at_start: bool = False
    """Choose a goal when an episode begins. In the public code the first goal of an episode is left over from the one
    before, for up to skill_duration - 1 steps."""

    def __post_init__(self) -> None:
        check_positive(self, "horizon", "skill_duration", "policy_units", "slow_critic_every")
        check_shares(self, "return_lambda", "entropy_target", "uniform_mix")
        check_discounts(self, "behaviour_discount")
        check_choice("goal_reward", self.goal_reward, get_args(GoalReward))
        check_choice("worker_weight", self.worker_weight, get_args(WorkerWeight))
        check_choice("manager_reward", self.manager_reward, get_args(ManagerReward))
        if self.horizon % self.skill_duration:
            raise ValueError(f"skill_duration must divide the horizon, got {self.skill_duration} and {self.horizon}")
        if not (self.manager_extrinsic or self.manager_exploration) or not (self.worker_extrinsic or self.worker_goal):
            raise ValueError("manager and worker need a reward each: a weight must not be 0")


@dataclass(frozen=True)
class DirectorLearningConfig(ScheduleConfig):
    """Optimisation of all networks."""

    steps_per_update: float = 16.0
    learning_starts: int = 10_000
    batch_size: int = 16
    """Sequences per update."""
    learning_rate: float = 1e-4
    """Step size of Adam."""
    adam_epsilon: float = 1e-6
    """Added to the root mean square of gradients that Adam divides by."""
    gradient_clip: float = 100.0
    """Largest norm of all gradients of a network."""
    weight_decay: float = 1e-2
    """Share of the learning rate by which weights shrink at every update."""
    symmetries: bool = False
    """Show every sequence in one of its symmetric images, where the environment offers them. Not in the paper."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "batch_size", "learning_rate", "adam_epsilon", "gradient_clip")


@dataclass(frozen=True)
class SequenceConfig(StoreConfig):
    """Replay of sequences."""

    capacity: int = 2_000_000
    sequence_length: int = 12
    """States of a sequence. Shorter episodes are dropped, unless sequences go on across episodes."""
    across_episodes: bool = False
    """Sequences begin with any state, and go on with another episode where one ends. In the public code they lie within
    an episode, so that only their last state can be terminal: the model learns that nothing ends before that step."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sequence_length < 2:
            raise ValueError(f"a sequence needs at least 2 states, got {self.sequence_length}")


@dataclass(frozen=True)
class DirectorConfig(RunConfig):
    """A run of Director."""

    agent: str = "director"
    """The agent to train."""
    environments: int = 4
    """Environments stepped together."""
    model: WorldModelConfig = field(default_factory=WorldModelConfig)
    goals: GoalConfig = field(default_factory=GoalConfig)
    behaviour: BehaviourConfig = field(default_factory=BehaviourConfig)
    learning: DirectorLearningConfig = field(default_factory=DirectorLearningConfig)
    replay: SequenceConfig = field(default_factory=SequenceConfig)


# What each preset changes, by block.
ADDED: Table = {
    "paper": {"run": {"environments": 4}},
    "fast": {
        "run": {"environments": 16, "threads": 1},
        "model": {
            "pictures": "cells",
            "balanced_cells": True,
            "agent_cell_weight": 10.0,
            "deterministic": 256,
            "units": 256,
            "latents": 32,
            "latent_classes": 8,
            "head_layers": 2,
            "head_units": 128,
            "kl_scale": 1.0,
        },
        "goals": {"goal_layers": 2, "goal_units": 128},
        "behaviour": {
            "starts": 64,
            "policy_layers": 2,
            "policy_units": 128,
            "slow_critic_every": 10,
            "worker_extrinsic": 2.0,
            "endless_intrinsic": True,
        },
        # Many random steps first: a model of its own first habits does not know the rest of the world.
        "learning": {"steps_per_update": 24.0, "learning_rate": 1e-3, "learning_starts": 60_000},
        "replay": {"capacity": 500_000},
    },
    "debug": {
        "model": {
            "pictures": "cells",
            "picture_units": 32,
            "deterministic": 32,
            "units": 32,
            "latents": 4,
            "latent_classes": 4,
            "head_layers": 1,
            "head_units": 32,
        },
        "goals": {"codes": 4, "code_classes": 4, "goal_layers": 1, "goal_units": 32},
        "behaviour": {"policy_layers": 1, "policy_units": 32},
        "learning": {"learning_rate": 1e-3, "learning_starts": 200, "batch_size": 4},
        "replay": {"capacity": 1_000, "sequence_length": 6},
    },
}


def director_preset(name: str, agent: str, env: str, world: WorldConfig) -> DirectorConfig:
    """The configuration that a run starts from, in this world."""
    more = added(name, ADDED)
    blocks = {
        "model": WorldModelConfig,
        "goals": GoalConfig,
        "behaviour": BehaviourConfig,
        "learning": DirectorLearningConfig,
        "replay": SequenceConfig,
    }
    values = common_values(name) | more.get("run", {}) | {"agent": agent, "env": env, "world": world}
    return DirectorConfig(**values | {block: kind(**more.get(block, {})) for block, kind in blocks.items()})


def check(config: RunConfig, spec: EnvironmentSpec) -> None:
    """Refuse an environment that lacks what Director needs."""
    if spec.palette is None:
        raise ValueError(
            f"{config.agent!r} sees pictures and needs a palette; the environment {config.env!r} offers none"
        )
    if config.decision.ensemble != 1:
        raise ValueError(f"{config.agent!r} has no ensemble of symmetric images: its memory is of one image")
