"""Frozen configuration: validated where it is made, never changed afterwards."""

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

Config = TypeVar("Config")
Dynamics = Literal["lava", "walls"]
Start = Literal["uniform", "fixed"]
Strategy = Literal["episode", "future"]
Regenerate = Literal["once", "trigger", "step"]
Truth = Literal["edges", "rewards", "terminal", "vertices", "policy"]

EVALUATION_DIFFICULTIES = (0.25, 0.35, 0.45, 0.55)


@dataclass(frozen=True)
class WorldConfig:
    """One distribution of lava-world tasks (paper, section 5; the grid has no surrounding wall)."""

    width: int = 12
    """Cells along x, at least 3: start and goal stand on the two side columns."""
    height: int = 12
    """Cells along y, at least 3."""
    difficulty: float = 0.4
    """Share of the inner columns' cells that is lava; the count is exact."""
    spread: float = 0.0
    """Each task's difficulty is drawn uniformly from difficulty +- spread."""
    dynamics: Dynamics = "lava"
    """"lava" kills; "walls" puts walls in the same cells: they block and do not kill."""
    slip: float = 0.0
    """Probability with which an action is replaced by a uniformly random one."""
    max_steps: int = 64
    """Steps after which an episode is truncated; the paper's value, for 12x12."""
    start: Start = "uniform"
    """"uniform": any non-terminal cell that the task's start reaches; "fixed": the task's start itself."""

    def __post_init__(self) -> None:
        for name in ("width", "height", "max_steps"):
            if not isinstance(getattr(self, name), int):
                raise ValueError(f"{name} must be a whole number, got {getattr(self, name)!r}")
        if self.width < 3 or self.height < 3:
            raise ValueError(f"a grid of {self.width}x{self.height} is too small; width and height must be at least 3")
        if not 0.0 <= self.slip <= 1.0:
            raise ValueError(f"slip is a probability, got {self.slip}; possible: 0 to 1")
        if self.max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, got {self.max_steps}")
        for name, value, choices in (
            ("dynamics", self.dynamics, get_args(Dynamics)),
            ("start", self.start, get_args(Start)),
        ):
            if value not in choices:
                raise ValueError(f"unknown {name} {value!r}; available: {', '.join(choices)}")
        self._check_difficulty()

    def _check_difficulty(self) -> None:
        # Written so that NaN is refused too.
        if not 0.0 <= self.spread <= self.max_lava / self.field / 2:
            raise ValueError(
                f"a spread of {self.spread} is not possible; it must be 0 to {self.max_lava / self.field / 2:.3f}"
            )
        if not self.difficulty - self.spread >= 0.0:
            raise ValueError(
                f"difficulty {self.difficulty} +- {self.spread} falls below 0; "
                f"possible: {self.spread:g} to {self.max_lava / self.field - self.spread:.3f}"
            )
        if not self.difficulty + self.spread < (self.max_lava + 1) / self.field:
            raise ValueError(
                f"difficulty {self.difficulty} +- {self.spread} asks for up to "
                f"{(self.difficulty + self.spread) * self.field:.0f} lava cells of {self.field}, which leaves no path; "
                f"on a {self.width}x{self.height} grid at most {self.max_lava} are possible: "
                f"difficulty + spread <= {self.max_lava / self.field:.3f}"
            )

    @property
    def field(self) -> int:
        """Cells of the inner columns, where lava may lie."""
        return (self.width - 2) * self.height

    @property
    def max_lava(self) -> int:
        """Most lava cells that leave a path: one straight row through the field stays free."""
        return self.field - (self.width - 2)

    @property
    def cells(self) -> int:
        """S, the number of cells of the grid."""
        return self.width * self.height


@dataclass(frozen=True)
class NetworkConfig:
    """Shapes of the networks (paper, App. "Implementation details")."""

    embedding: int = 16
    """Channels of the state encoder."""
    scaled_start: bool = False
    """Begin with weights that let states differ: word embeddings the quieter the more cells a word fills, their mean
    cell taken away, and heads that keep differences; not in the paper."""
    field_size: int = 8
    """Side of a local field; shrinks to the grid where that is smaller."""
    fields: int = 4
    """Local fields that attention selects."""
    partial_width: int = 128
    """Width of the partial state sigma(s)."""
    spatial_abstraction: bool = True
    """False replaces the selector by one linear layer on the whole state (an ablation)."""
    pessimistic_heads: bool = False
    """Begin with values near 0 and distances near the longest instead of in the middle; not in the paper."""
    hidden: int = 256
    """Hidden units of every head."""
    bins: int = 16
    """Bins of every histogram; distances are 1 to this many steps."""

    def __post_init__(self) -> None:
        _check_positive(self, "embedding", "field_size", "fields", "partial_width", "hidden")
        if self.bins < 2:
            raise ValueError(f"a histogram needs at least 2 bins, got {self.bins}")


@dataclass(frozen=True)
class GeneratorConfig:
    """The checkpoint generator (paper, App. "Checkpoint Generator"); agents that imagine nothing ignore it."""

    description_bits: int = 6
    """Binary latents of a partial description."""
    generator_width: int = 32
    """Channels of its embeddings; later layers are two and four times as wide."""
    flat_description: bool = False
    """Describe states by linear layers on all cells instead of convolutions and pooling; not in the paper."""
    entropy_scale: float = 2.5e-4
    """Weight of the entropy of the partial descriptions."""
    entropy_period: int = 10_000
    """Updates of one cycle of that weight: it rises over the first half and then stays."""
    generator_every: int = 1
    """Updates of the estimators for each one of the generator, which learns faster than they do; paper: 1."""
    learned_goal: bool = False
    """Imagine the goal too, as a state whose entering was rewarded, instead of being told it (paper, conclusions)."""

    def __post_init__(self) -> None:
        _check_positive(self, "description_bits", "generator_width", "entropy_period", "generator_every")


@dataclass(frozen=True)
class PlanningConfig:
    """Proxy problems and how they are followed (paper, Alg. 1, App. "Planning"); agents that do not plan ignore it."""

    checkpoints: int = 30
    """States that are imagined for a proxy problem, beside the current state and the goal."""
    max_vertices: int = 12
    """Vertices that pruning leaves, current state and goal included."""
    prune_vertices: bool = True
    """False keeps all vertices (an ablation, with as many checkpoints as there should be vertices)."""
    edge_threshold: float = 8.0
    """Longer edges are cut."""
    max_distance: float = 16.0
    """Distances are cut off here before vertices are clustered; the largest that the estimator knows."""
    sweeps: int = 5
    """Sweeps of value iteration."""
    timeout: int = 8
    """Steps after which a target that was not reached is given up."""
    regenerate: Regenerate = "trigger"
    """When vertices are imagined anew: "once" an episode, at every planning ("trigger"), or at every "step"."""
    revisit_penalty: float = 0.0
    """What an edge loses each time that the episode was in its first state before and chose the action with which it
    begins: a way that led back is longer than it was thought to be. Not in the paper."""
    edge_length_penalty: float = 0.0
    """What an edge loses for its length: one of d steps counts (1 - edge_length_penalty) ** (d * d). The longer an edge, the more
    often it is not what it seems, so that a way over near vertices should beat a direct one. Not in the paper."""
    always_goal: bool = False
    """Always aim at the goal instead of planning (a baseline)."""
    oracle_parts: tuple[Truth, ...] = ()
    """What comes from ground truth instead of being learned (ablations): all of "edges", which are then not cut for
    their length (oracle plan); only their "rewards" or "terminal" states; "vertices", random reachable states instead
    of imagined ones; the "policy" that walks (oracle policy)."""
    match_observations: bool = False
    """See by whole observations, not by partial descriptions, whether a checkpoint is met; not in the paper."""

    def __post_init__(self) -> None:
        _check_positive(self, "max_vertices", "edge_threshold", "max_distance", "sweeps", "timeout")
        _check_shares(self, "revisit_penalty", "edge_length_penalty")
        if self.checkpoints < 0 or self.max_vertices < 2:
            raise ValueError(f"a problem needs 2 vertices or more, got {self.checkpoints} + 2 and max_vertices {self.max_vertices}")
        if self.regenerate not in get_args(Regenerate):
            raise ValueError(f"unknown regenerate {self.regenerate!r}; available: {', '.join(get_args(Regenerate))}")
        for part in self.oracle_parts:
            if part not in get_args(Truth):
                raise ValueError(nearest_name("oracle_parts", part, get_args(Truth)))


@dataclass(frozen=True)
class LearningConfig:
    """Optimisation (paper, App. "Training"; authors' code for batch and schedule)."""

    batch_size: int = 64
    """Samples per update."""
    steps_per_update: float = 4.0
    """Environment steps for each gradient update, kept whatever the number of environments."""
    learning_starts: int = 20_000
    """Environment steps before the first update."""
    target_update_every: int = 8_000
    """Environment steps between copies of the online to the target network."""
    learning_rate: float = 2.5e-4
    final_learning_rate_fraction: float = 1.0
    """Share of the learning rate that is left at the end; it falls linearly over the second half. Paper: all of it."""
    adam_epsilon: float = 1.5e-4
    gradient_clip: float = 1.0
    """Largest absolute value of a gradient's entries."""
    task_discount: float = 0.99
    """Discount of task rewards."""
    policy_discount: float = 0.95
    """Discount of the intrinsic reward for reaching a target."""
    delusion_scale: float = 0.0
    """Weight of the distance losses towards imagined states; the paper's delusion suppression uses 0.25."""
    hindsight_bound: bool = False
    """Believe the episode: a target that it came to k steps later is at most k away, and the way there collects at
    least what it collected. Not in the paper, and only true of deterministic worlds (under slip it is optimistic) in
    which shorter ways do not collect less."""
    act_with_target_network: bool = False
    """Act in training with the target network, whose partial states can be remembered between copies; not in the
    paper. Evaluation acts with the online network, or with its average."""
    practice: bool = False
    """PlanState to random imagined checkpoints in training, and sometimes to the goal, instead of planning, which is then
    only done in evaluation; not in the paper. Targets are learned from hindsight either way."""
    symmetries: bool = False
    """Show every task in one of its symmetric images, if the environment offers them: another one after every sync with
    all_pairs, otherwise for every sample. Not in the paper."""
    ema_decay: float = 0.0
    """Evaluate a running average of the weights, of which this share is kept at every update; 0 evaluates the newest
    weights, as the paper does."""
    updater_process: bool = False
    """Where there are two threads or more, update the estimators in a process of their own, while another one acts,
    prepares what is learned next and updates the generators; operations then have one thread less each. What is
    learned is, bit for bit, what one process with that many threads learns. Needs all_pairs and act_with_target_network, since
    neither priorities nor the newest weights are known ahead; agents without targets ignore it."""
    epsilon_start: float = 1.0
    """Share of random actions at the beginning."""
    epsilon_end: float = 0.01
    epsilon_steps: int = 1_000_000
    """Environment steps over which exploration falls linearly."""
    epsilon_evaluation: float = 0.001

    def __post_init__(self) -> None:
        _check_positive(self, "batch_size", "steps_per_update", "target_update_every", "learning_rate", "epsilon_steps")
        _check_positive(self, "adam_epsilon", "gradient_clip")
        _check_shares(
            self, "final_learning_rate_fraction", "ema_decay", "epsilon_start", "epsilon_end", "epsilon_evaluation"
        )
        if self.learning_starts < 0 or self.delusion_scale < 0:
            raise ValueError("learning_starts and delusion_scale must not be negative")
        for name in ("task_discount", "policy_discount"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise ValueError(f"{name} must lie between 0 and 1, got {getattr(self, name)}")


@dataclass(frozen=True)
class ReplayConfig:
    """Experience replay (paper, App. "HER")."""

    capacity: int = 1_000_000
    """States that are kept, whole episodes at a time."""
    targets: int = 4
    """Hindsight targets per transition; agents without targets ignore it."""
    strategy: Strategy = "episode"
    """Where targets come from: the whole "episode", or only the "future" of the transition."""
    prioritized: bool = True
    """False: every sample is equally likely."""
    alpha: float = 0.6
    """Exponent of the losses that priorities are."""
    beta: float = 0.4
    """Exponent of the importance weights at the beginning; it rises to 1 over the run."""
    all_pairs: bool = False
    """Learn from all pairs of some transitions and targets of a few episodes, each state encoded once, instead of
    single samples by priority, so that targets, strategy and priorities do not matter; not in the paper. The settings
    below say how many. Agents without targets ignore it."""
    pair_episodes: int = 6
    """Episodes per update."""
    pair_transitions: int = 6
    """Consecutive transitions of each episode; the states between them are targets too."""
    pair_targets: int = 4
    """Further targets of each episode, from anywhere in it."""
    pair_endings: float = 0.0
    """Share of the windows of transitions that end with their episode, where rewards and deaths are."""
    other_episodes: float = 0.0
    """Share of these targets that comes from other episodes of the same task, if the environment tells tasks apart."""

    def __post_init__(self) -> None:
        _check_positive(self, "capacity", "pair_episodes", "pair_transitions", "pair_targets")
        _check_shares(self, "alpha", "beta", "pair_endings", "other_episodes")
        if self.targets < 0:
            raise ValueError(f"targets must not be negative, got {self.targets}")
        if self.strategy not in get_args(Strategy):
            raise ValueError(f"unknown strategy {self.strategy!r}; available: {', '.join(get_args(Strategy))}")


@dataclass(frozen=True)
class EvaluationConfig:
    """What is measured during training, on tasks that are new every time."""

    evaluate_every: int = 50_000
    """Environment steps between evaluations."""
    evaluation_episodes: int = 20
    """Tasks per difficulty, and training tasks, per evaluation."""
    difficulties: tuple[float, ...] = EVALUATION_DIFFICULTIES
    difficulty_spread: float = 0.05
    training_task_start: Start = "fixed"
    """Training tasks are evaluated from their own start; the authors' code uses "uniform" ones."""

    def __post_init__(self) -> None:
        _check_positive(self, "evaluate_every", "evaluation_episodes")
        if self.training_task_start not in get_args(Start):
            raise ValueError(f"unknown training_task_start {self.training_task_start!r}; available: uniform, fixed")


@dataclass(frozen=True)
class RunConfig:
    """One training run, whole: equal configurations give equal runs."""

    agent: str = "modelfree"
    """Which agent learns."""
    preset: str = "paper"
    """The named block of defaults that this configuration began with."""
    seed: int = 0
    """Decides the tasks, the weights and everything that happens."""
    steps: int = 1_500_000
    """Environment steps, all environments together."""
    tasks: int = 50
    """Number of fixed training tasks; 0 for a new task every episode."""
    environments: int = 16
    """Environments that are stepped together."""
    threads: int = 2
    """Threads of the network library; part of the run, since sums in another order round differently."""
    checkpoint_every: int = 10_000
    """Environment steps between checkpoints."""
    record_every: int = 2_000
    """Environment steps between records of losses and throughput."""
    world: WorldConfig = field(default_factory=WorldConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    generator: GeneratorConfig = field(default_factory=GeneratorConfig)
    planning: PlanningConfig = field(default_factory=PlanningConfig)
    learning: LearningConfig = field(default_factory=LearningConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    @property
    def network_threads(self) -> int:
        """Threads that operations of the networks are divided among."""
        return self.threads - 1 if self.uses_updater_process else self.threads

    @property
    def uses_updater_process(self) -> bool:
        """Whether there is a second process."""
        return self.learning.updater_process and self.agent.startswith("skipper") and self.threads > 1

    def __post_init__(self) -> None:
        _check_positive(self, "steps", "environments", "threads", "checkpoint_every", "record_every")
        if not 0 <= self.seed < 2**63 or self.tasks < 0:
            raise ValueError(f"seed must be 0 to 2**63 - 1 and tasks not negative, got {self.seed} and {self.tasks}")
        if self.replay.capacity <= self.world.max_steps:
            raise ValueError(
                f"capacity must exceed an episode's {self.world.max_steps} steps, got {self.replay.capacity}"
            )
        if self.learning.hindsight_bound and not (self.replay.all_pairs and self.world.slip == 0):
            raise ValueError("hindsight_bound needs all_pairs, and a world in which moves do not slip")
        if self.learning.updater_process and not (self.replay.all_pairs and self.learning.act_with_target_network):
            raise ValueError(
                "updater_process needs all_pairs and act_with_target_network: priorities and weights are not known ahead"
            )
        if self.planning.max_distance != self.network.bins:
            raise ValueError(
                f"max_distance must be the last of the {self.network.bins} bins, got {self.planning.max_distance:g}"
            )
        for level in self.evaluation.difficulties:  # refuses what cannot be evaluated before anything is trained
            replace(self.world, difficulty=level, spread=self.evaluation.difficulty_spread)


def _check_positive(config: Any, *names: str) -> None:
    for entry in fields(config):
        value = getattr(config, entry.name)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{entry.name} must be a finite number, got {value}")
    for name in names:
        if not getattr(config, name) > 0:
            raise ValueError(f"{name} must be positive, got {getattr(config, name)}")


def _check_shares(config: Any, *names: str) -> None:
    for name in names:
        if not 0.0 <= getattr(config, name) <= 1.0:
            raise ValueError(f"{name} must be 0 to 1, got {getattr(config, name)}")


def nearest_name(what: str, name: str, available: Iterable[str]) -> str:
    """The message for a name that is not there, with the nearest one that is."""
    names = sorted(available)
    nearest = get_close_matches(name, names, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return f"unknown {what} {name!r:.80}; available: {', '.join(names)}{hint}"


def to_dict(config: Any) -> dict[str, Any]:
    """Nested dictionaries of JSON values."""
    return json.loads(json.dumps(asdict(config)))


def from_dict(kind: type[Config], data: Any, where: str = "configuration") -> Config:
    """The inverse of ``to_dict``: every field must be there, of its type, and no other."""
    if not isinstance(data, dict):
        raise ValueError(f"{where}: wanted an object, got {data!r:.60}")
    known = {entry.name for entry in fields(cast(Any, kind))}
    for name in data:
        if name not in known:
            raise ValueError(f"{where}: {nearest_name('field', name, known)}")
    if missing := sorted(known - data.keys()):
        raise ValueError(f"{where}: missing {', '.join(missing)}")
    hints = get_type_hints(kind)
    values = {name: _parse(hints[name], value, f"{where}.{name}") for name, value in data.items()}
    try:
        return kind(**values)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _parse(kind: Any, value: Any, where: str) -> Any:
    if is_dataclass(kind):
        return from_dict(cast(type[Any], kind), value, where)
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{where}: wanted a list, got {value!r:.60}")
        return tuple(_parse(get_args(kind)[0], entry, where) for entry in value)
    if get_origin(kind) is Literal:
        kind = str
    # JSON does not tell 4 from 4.0, and bool is an int in Python but not here.
    if kind is float and type(value) is int and abs(value) < 2**53:
        value = float(value)
    if type(value) is not kind:
        raise ValueError(f"{where}: wanted {kind.__name__}, got {value!r:.60}")
    return value


def content_hash(config: Any) -> str:
    """Sixteen hexadecimal digits that differ where configurations do."""
    return hashlib.sha256(json.dumps(to_dict(config), sort_keys=True).encode()).hexdigest()[:16]


def differences(one: Any, two: Any, prefix: str = "") -> list[str]:
    """The fields in which two configurations differ, as "name: this -> that"."""
    found = []
    for entry in fields(one):
        name, left, right = prefix + entry.name, getattr(one, entry.name), getattr(two, entry.name)
        if is_dataclass(left):
            found += differences(left, right, f"{name}.")
        elif left != right:
            found.append(f"{name}: {left} -> {right}")
    return found
