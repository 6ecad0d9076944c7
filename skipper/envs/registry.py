"""Environment families by name: all that training, evaluation, analysis, figures, viewer and commands know of one.

A family offers what it can. Where it returns None (no ground truth, no task stream), whatever needs it is off.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from skipper.config import WorldConfig, nearest_name
from skipper.types import Array, EnvironmentSpec, Worlds


class TaskSet(Protocol):
    """N fixed tasks of one world."""

    @property
    def world(self) -> Any:
        """The family's block of configuration."""

    def __len__(self) -> int:
        """N."""

    def subset(self, rows: Sequence[int] | Array) -> "TaskSet":
        """The tasks at ``rows``, in that order."""


class Board(NamedTuple):
    """What the viewer draws of one task: a character per cell, and what the characters mean."""

    width: int
    height: int
    layout: str  # S characters, cell x * height + y
    goal: int | None  # its cell, where there is one


class TaskTruth(Protocol):
    """Exact ground truth about N tasks with S states each; states are numbers from 0 to S - 1."""

    states: int

    def observe(self, rows: Array, states: Array) -> Array:
        """(B, W, H, C) observations of ``states`` (B,) of the tasks ``rows`` (B,)."""

    def starts(self) -> Array:
        """(N,) the tasks' own start states."""

    def goals(self) -> Array:
        """(N,) the tasks' goal states."""

    def free(self) -> Array:
        """(N, S) bool, non-terminal states in which an agent may be, reachable or not."""

    def reachable(self, row: int) -> Array:
        """(R,) the non-terminal states that task ``row`` reaches from its start."""

    def distances(self, rows: Array, sources: Array) -> Array:
        """(B, S) fewest steps from ``sources`` (B,) of the tasks ``rows`` (B,) to every state, ``inf`` where none."""

    def walks(self, rows: Array, targets: Array, actions: Array) -> tuple[Array, Array]:
        """Probability of reaching ``targets`` (Q,) with ``actions`` (Q, S) from every state, and the expected steps."""

    def optimal_path(self, row: int) -> Array:
        """(L,) states of an optimal path of task ``row`` from its start to its goal, both included."""


class Family(Protocol):
    """One kind of environment."""

    name: str
    config_type: type[WorldConfig]  # its block of a run's configuration
    options_type: type[Any]  # dataclass of command-line options with ``changed(world) -> world``
    actions: tuple[str, ...]  # their names
    cell_colours: dict[str, str]  # of the characters of a ``Board``, as "#rrggbb"

    def world(self, preset: str) -> Any:
        """The world that a preset trains in."""

    def spec(self, world: Any) -> EnvironmentSpec:
        """What agents must know of the world before they act."""

    def training_tasks(self, world: Any, count: int, seed: int) -> TaskSet:
        """``count`` different training tasks; another seed gives another set."""

    def vector_env(self, num_envs: int, tasks: TaskSet | None, world: Any, *, one_each: bool = False) -> Worlds:
        """Environments that play random ones of ``tasks``, or ``one_each``; None for a new task every episode."""

    def evaluation_names(self, world: Any) -> tuple[str, ...]:
        """Names of the evaluation sets."""

    def evaluation_tasks(self, world: Any, name: str, count: int, seed: int, split: str = "evaluation") -> TaskSet:
        """``count`` unseen tasks of the set ``name``; another seed gives other tasks."""

    def training_evaluation(self, world: Any, tasks: TaskSet | None, count: int, seed: int) -> TaskSet:
        """Training tasks as they are evaluated; None for tasks like those of a stream."""

    def success(self, reward: Array, terminated: Array) -> Array:
        """(B,) bool, whether a step with these rewards and ends solved its task."""

    def draw(self, observation: Array) -> Array:
        """(h, w, 3) uint8 picture of an observation (W, H, C)."""

    def board(self, tasks: TaskSet, row: int) -> Board:
        """What the viewer shows of a task."""

    def truth(self, tasks: TaskSet) -> TaskTruth | None:
        """Exact ground truth, where there is one."""

    def about(self, world: Any) -> dict[str, str]:
        """What people should know of this world, for captions."""


def _lava() -> Family:
    from skipper.envs.lava.family import LAVA

    return LAVA


# Loaded on demand: compiled environments take a while to import.
FAMILIES: dict[str, Callable[[], Family]] = {"lava": _lava}


def register_family(name: str, load: Callable[[], Family]) -> None:
    """Make a family known under ``name``; ``load`` is called when it is first needed."""
    FAMILIES[name] = load


def find_family(name: str) -> Family:
    """The family called ``name``."""
    if name not in FAMILIES:
        raise ValueError(nearest_name("environment", name, FAMILIES))
    return FAMILIES[name]()
