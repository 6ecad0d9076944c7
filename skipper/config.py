"""Frozen blocks of configuration: validated when they are built, never changed afterwards.

A run holds the blocks that its agent and its environment use. The defaults are the paper's numbers.
"""

from dataclasses import dataclass, field
from typing import Literal, get_args

from skipper.runtime.checks import check_choice, check_discounts, check_positive, check_shares

Replan = Literal["trigger", "step"]
OraclePart = Literal["edges", "rewards", "terminal", "vertices", "policy"]
Split = Literal["evaluation", "tuning"]  # classes of unseen tasks
PAPER_CELLS = 12 * 12
FIRST_REPORTED_SEED = 20  # smaller training and evaluation seeds are for choosing settings


@dataclass(frozen=True, kw_only=True)
class WorldConfig:
    """What every environment family's own block has."""

    max_steps: int = 64
    """Steps after which an episode is truncated; the paper's value, for 12x12."""

    def __post_init__(self) -> None:
        if not isinstance(self.max_steps, int):
            raise ValueError(f"max_steps must be a whole number, got {self.max_steps!r}")
        if self.max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, got {self.max_steps}")

    @property
    def deterministic(self) -> bool:
        """Whether an action always has the same effect in the same state."""
        return True

    @property
    def cells(self) -> int:
        """Places where an agent can be, by which presets scale; where unknown, those of the paper's grids."""
        return PAPER_CELLS


@dataclass(frozen=True)
class NetworkConfig:
    """Shapes of encoder, selector and heads (paper, App. "Implementation details")."""

    embedding: int = 16
    """Channels of the state encoder."""
    scaled_start: bool = False
    """Balance the initial weights so that states differ from the start: embeddings are scaled down by the number of
    cells that a word fills and centred, heads use He initialisation. Not in the paper."""
    field_size: int = 8
    """Side of a local field; capped at the size of the grid."""
    fields: int = 4
    """Local fields that attention selects."""
    linear_scores: bool = False
    """Score local fields before they are normalised: scores are then linear in the state, and only the selected fields
    need to be computed. Not in the paper; no effect without spatial_abstraction."""
    partial_width: int = 128
    """Width of the partial state sigma(s)."""
    spatial_abstraction: bool = True
    """Look at a few local fields of the state; otherwise one linear layer sees all of it (an ablation)."""
    contrast_start: bool = False
    """Start with heads on the difference of source and target: what all states of a scene share cancels out. Not in the
    paper; no effect on an agent without targets."""
    pessimistic_heads: bool = False
    """Start with values near 0 and distances near the maximum instead of in the middle. Not in the paper."""
    hidden: int = 256
    """Hidden units of every head."""
    bins: int = 16
    """Bins of every histogram; distances range from 1 to this many steps."""

    def __post_init__(self) -> None:
        check_positive(self, "embedding", "field_size", "fields", "partial_width", "hidden")
        if self.bins < 2:
            raise ValueError(f"a histogram needs at least 2 bins, got {self.bins}")


@dataclass(frozen=True)
class GeneratorConfig:
    """The checkpoint generator (paper, App. "Checkpoint Generator")."""

    description_bits: int = 6
    """Binary latents of a partial description."""
    generator_width: int = 32
    """Channels of its embeddings; later layers are two and four times as wide."""
    flat_description: bool = False
    """Describe states by linear layers on all cells instead of convolutions and pooling. Not in the paper."""
    entropy_scale: float = 2.5e-4
    """Weight of the entropy of the partial descriptions."""
    entropy_period: int = 10_000
    """Updates per cycle of that weight: it rises over the first half, then stays at its maximum."""

    def __post_init__(self) -> None:
        check_positive(self, "description_bits", "generator_width", "entropy_period")


@dataclass(frozen=True)
class SkipperGeneratorConfig(GeneratorConfig):
    """Skipper's generators, which learn beside the estimators."""

    generator_every: int = 1
    """Update the generator once per this many updates of the estimators. Paper: 1."""
    learned_goal: bool = False
    """Predict the goal as a state whose entering was rewarded, instead of receiving it (paper, conclusions)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "generator_every")


@dataclass(frozen=True)
class PlanningConfig:
    """Proxy problems and how the agent follows them (paper, Alg. 1, App. "Planning")."""

    checkpoints: int = 30
    """Checkpoints to imagine for a proxy problem, besides the current state and the goal."""
    max_vertices: int = 12
    """Vertices that pruning keeps (with prune_vertices), current state and goal included."""
    prune_vertices: bool = True
    """Keep only max_vertices; otherwise all (an ablation; set checkpoints to the number of vertices wanted)."""
    cluster_current_state: bool = False
    """Cluster the current state too, as a fixed medoid like the goal (authors' code). In the paper only the goal is
    fixed. The current state is a vertex either way, and one of max_vertices."""
    edge_threshold: float = 8.0
    """Prune edges longer than this."""
    max_distance: float = 16.0
    """Cap on distances before vertices are clustered: the largest that the estimator can express."""
    sweeps: int = 5
    """Sweeps of value iteration."""
    timeout: int = 8
    """Steps after which the agent gives up a target that it has not reached."""
    regenerate: bool = True
    """Imagine new checkpoints for every plan (skipper-regen); otherwise keep those of the episode's first
    plan (skipper-once)."""
    replan: Replan = "trigger"
    """When to plan again: on a "trigger", which is a checkpoint reached or a timeout, as in the paper, or at every
    "step", as the authors' code does when it regenerates."""
    replan_after_exploring: bool = True
    """Take random actions without planning, and plan again after each (authors' code); otherwise plan and follow
    the plan as if no action had been random."""
    edge_length_penalty: float = 0.0
    """Discount long edges: an edge of d steps counts (1 - edge_length_penalty) ** (d * d). Long edges are wrong more
    often, so paths over near vertices should win. Not in the paper."""
    edge_backups: int = 0
    """Sweeps that lengthen an edge to at least its first step and the rest of the way, wherever the step leads to a
    vertex. Long edges are often too short, as if a wall of lava were not there. For moves without randomness. Not in
    the paper."""
    distance_distributions: bool = False
    """Learn whole distributions of distances, not only means as the authors' code does. Their last bin means never in
    the discount of an edge, E[discount ** D]; in its mean distance it counts as many steps as there are bins."""
    always_goal: bool = False
    """Always aim at the goal instead of planning (a baseline)."""
    oracle_parts: tuple[OraclePart, ...] = ()
    """Parts that ground truth replaces (ablations): all "edges", which are then not pruned by length (oracle plan);
    only their "rewards" or "terminal" states; "vertices", random reachable states instead of imagined ones; the
    "policy" that walks (oracle policy)."""
    match_observations: bool = False
    """Detect that a checkpoint is reached by equal states instead of equal partial descriptions. Not in the paper."""

    def __post_init__(self) -> None:
        check_positive(self, "max_vertices", "edge_threshold", "max_distance", "sweeps", "timeout")
        check_shares(self, "edge_length_penalty")
        if self.edge_backups < 0:
            raise ValueError(f"edge_backups must not be negative, got {self.edge_backups}")
        if self.checkpoints < 0 or self.max_vertices < 2:
            raise ValueError(
                f"a problem needs at least 2 vertices, got {self.checkpoints} + 2 and max_vertices {self.max_vertices}"
            )
        if not isinstance(self.regenerate, bool):
            raise ValueError(f"regenerate must be True or False, got {self.regenerate!r}; replan says when to plan")
        check_choice("replan", self.replan, get_args(Replan))
        for part in self.oracle_parts:
            check_choice("oracle part", part, get_args(OraclePart))


@dataclass(frozen=True)
class ScheduleConfig:
    """When to learn; what every agent's block of learning has."""

    steps_per_update: float = 4.0
    """Environment steps per gradient update, whatever the number of environments."""
    learning_starts: int = 20_000
    """Environment steps before the first update."""

    def __post_init__(self) -> None:
        check_positive(self, "steps_per_update")
        if self.learning_starts < 0:
            raise ValueError(f"learning_starts must not be negative, got {self.learning_starts}")


@dataclass(frozen=True)
class LearningConfig(ScheduleConfig):
    """Optimisation and exploration (paper, App. "Training"; batch and schedule as in the authors' code)."""

    batch_size: int = 64
    """Samples per update."""
    target_update_every: int = 8_000
    """Environment steps between copies of the online network to the target network."""
    learning_rate: float = 2.5e-4
    """Step size of Adam."""
    warmup_updates: int = 0
    """Updates over which the learning rate rises from 0 at the beginning. Paper: 0."""
    final_learning_rate_fraction: float = 1.0
    """Fraction of the learning rate at the end; it falls linearly over the second half. Paper: 1."""
    adam_epsilon: float = 1.5e-4
    """Added to the root mean square of gradients that Adam divides by."""
    gradient_clip: float = 1.0
    """Maximum absolute value of a gradient's entries."""
    update_clip: float = 0.0
    """Where the gradients of a parameter are larger than Adam expects, by their root mean square over this, its step
    shrinks by as much (Shazeer and Stern 2018); 0: never. Not in the paper."""
    task_discount: float = 0.99
    """Discount of task rewards."""
    symmetries: bool = False
    """Show every task in one of its symmetric images, where the environment offers them: another one after every
    target update with all_pairs or windows, otherwise for every sample. Not in the paper."""
    ema_decay: float = 0.0
    """Decay of the running average of the weights, which is then evaluated and saved; 0 evaluates the newest weights,
    as the paper does."""
    epsilon_start: float = 1.0
    """Share of random actions at the beginning."""
    epsilon_end: float = 0.01
    """Share of random actions after epsilon_steps."""
    epsilon_steps: int = 1_000_000
    """Environment steps over which exploration falls linearly."""
    epsilon_evaluation: float = 0.001
    """Share of random actions in evaluations."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "batch_size", "target_update_every", "learning_rate", "epsilon_steps")
        check_positive(self, "adam_epsilon", "gradient_clip")
        check_shares(self, "final_learning_rate_fraction", "ema_decay")
        check_shares(self, "epsilon_start", "epsilon_end", "epsilon_evaluation")
        for name in ("warmup_updates", "update_clip"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        check_discounts(self, "task_discount")


@dataclass(frozen=True)
class StoreConfig:
    """What is kept of experience; what every agent's block of replay has."""

    capacity: int = 1_000_000
    """States to keep, whole episodes at a time."""

    def __post_init__(self) -> None:
        check_positive(self, "capacity")


@dataclass(frozen=True)
class ReplayConfig(StoreConfig):
    """Prioritized experience replay (paper, App. "Training")."""

    prioritized: bool = True
    """Sample by the last losses of the samples; otherwise uniformly."""
    alpha: float = 0.6
    """Exponent of the losses that serve as priorities."""
    beta: float = 0.4
    """Initial exponent of the importance weights; it rises to 1 over the run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shares(self, "alpha", "beta")


@dataclass(frozen=True)
class DecisionConfig:
    """Aids of a trained agent when it decides; in training only in evaluations. Not in the paper."""

    revisit_penalty: float = 0.0
    """Share of its value that an action loses for each earlier time that the episode took it in the same state: what
    led back here is worth less than estimated. In a plan, edges lose it whose first action this is."""
    ensemble: int = 1
    """Average the estimates over this many symmetric images of each state. All 8 of a square grid make fewer errors
    than one, for eight times the work."""

    def __post_init__(self) -> None:
        check_shares(self, "revisit_penalty")
        check_positive(self, "ensemble")


@dataclass(frozen=True)
class EvaluationConfig:
    """When and how much to evaluate during training; which tasks is the environment's choice."""

    evaluate_every: int = 50_000
    """Environment steps between evaluations."""
    evaluation_episodes: int = 20
    """Tasks per evaluation set, and training tasks, per evaluation."""
    split: Split = "evaluation"
    """Unseen tasks to play: "tuning" for runs that settings are chosen by, "evaluation" for runs that are reported."""
    keep_weights: bool = False
    """Keep the weights of every evaluation, so that other variants and settings can be evaluated over training."""

    def __post_init__(self) -> None:
        check_positive(self, "evaluate_every", "evaluation_episodes")
        check_choice("split", self.split, get_args(Split))


@dataclass(frozen=True)
class RunConfig:
    """One training run, complete: equal configurations give equal runs. Agents with more blocks extend it."""

    agent: str = "modelfree"
    """The agent to train."""
    env: str = "lava"
    """The environment family."""
    preset: str = "paper"
    """Named defaults that the configuration starts from: "fast", "paper" or "debug"."""
    seed: int = 0
    """Decides the tasks, the weights and everything that happens."""
    steps: int = 1_500_000
    """Environment steps, all environments together."""
    tasks: int = 50
    """Number of fixed training tasks; 0 for a new task every episode."""
    environments: int = 16
    """Environments stepped together."""
    threads: int = 2
    """Threads of the network library; part of the run, since another order of sums rounds differently."""
    device: str = "cpu"
    """Where the networks learn, as PyTorch names it: "cpu", or "cuda" for a graphics card. Trained agents play on the
    CPU."""
    checkpoint_every: int = 10_000
    """Environment steps between checkpoints."""
    record_every: int = 2_000
    """Environment steps between records of losses and throughput."""
    world: WorldConfig = field(default_factory=WorldConfig)
    learning: ScheduleConfig = field(default_factory=ScheduleConfig)
    replay: StoreConfig = field(default_factory=StoreConfig)
    decision: DecisionConfig = field(default_factory=DecisionConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    def __post_init__(self) -> None:
        check_positive(self, "steps", "environments", "threads", "checkpoint_every", "record_every")
        if not 0 <= self.seed < 2**63 or self.tasks < 0:
            raise ValueError(f"seed must be 0 to 2**63 - 1 and tasks not negative, got {self.seed} and {self.tasks}")
        if self.replay.capacity <= self.world.max_steps:
            needed, given = self.world.max_steps, self.replay.capacity
            raise ValueError(f"capacity must exceed an episode's {needed} steps, got {given}")

    @property
    def network_threads(self) -> int:
        """Threads among which operations of the networks are divided."""
        return self.threads


@dataclass(frozen=True)
class EstimatorRunConfig(RunConfig):
    """A run of an agent that learns values, or other estimates, with the paper's networks."""

    network: NetworkConfig = field(default_factory=NetworkConfig)
    learning: LearningConfig = field(default_factory=LearningConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
