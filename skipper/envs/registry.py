"""Environment families by name: everything that training, evaluation, analysis, figures and the viewer know of one.

A family offers what it can. Without ground truth, symmetries or a scene, whatever needs them is off.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol

from skipper.config import WorldConfig
from skipper.runtime.checks import nearest_name
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
    """The map of one task as the viewer draws it: one character per cell."""

    width: int
    height: int
    layout: str  # S characters, cell x * height + y
    goal: int | None  # its cell, where there is one


class Detail(NamedTuple):
    """What the viewer shows of one observation where more than the agent's cell changes."""

    layout: str  # S characters, as in ``Board``
    direction: int | None  # of the agent: 0 east, 1 south, 2 west, 3 north
    carried: str = ""  # the character of what the agent carries


class TaskTruth(Protocol):
    """Exact ground truth about N tasks with S states each; states are numbers from 0 to S - 1."""

    @property
    def states(self) -> int:
        """S."""

    def observe(self, rows: Array, states: Array) -> Array:
        """(B, W, H, C) observations of ``states`` (B,) of the tasks ``rows`` (B,)."""

    def state_of(self, rows: Array, observations: Array) -> Array:
        """(B,) the states that observations (B, W, H, C) of the tasks ``rows`` (B,) show; inverts ``observe``."""

    def starts(self) -> Array:
        """(N,) the tasks' own start states."""

    def goals(self) -> Array:
        """(N,) the tasks' goal states."""

    def free(self) -> Array:
        """(N, S) bool, non-terminal states that an agent can be in, reachable or not."""

    def reachable(self, row: int) -> Array:
        """(R,) the non-terminal states that task ``row`` reaches from its start."""

    def successors(self, rows: Array, states: Array, actions: Array) -> Array:
        """(B,) the states that ``actions`` (B,) lead to from ``states`` (B,) when they have their intended effect."""

    def distances(self, rows: Array, sources: Array) -> Array:
        """(B, S) fewest steps from ``sources`` (B,) of the tasks ``rows`` (B,), ``inf`` without a path."""

    def walks(self, rows: Array, targets: Array, actions: Array) -> tuple[Array, Array]:
        """(Q, S) probability to reach ``targets`` (Q,) from every state with ``actions`` (Q, S), and expected steps."""

    def optimal_path(self, row: int) -> Array:
        """(L,) states of an optimal path of task ``row`` from its start to its goal, both included."""


class Family(Protocol):
    """One kind of environment."""

    @property
    def name(self) -> str:
        """The name that it is registered under."""

    @property
    def config_type(self) -> type[WorldConfig]:
        """The dataclass of its block of a run's configuration."""

    @property
    def options_type(self) -> type[Any]:
        """A dataclass of command-line options with a method ``changed(world) -> world``."""

    @property
    def actions(self) -> tuple[str, ...]:
        """Names of the actions."""

    @property
    def cell_colours(self) -> Mapping[str, str]:
        """The colour of each character of a ``Board``, as "#rrggbb"."""

    @property
    def cell_marks(self) -> Mapping[str, str]:
        """SVG paths drawn on the cells of some characters, in a cell of size 1 from its upper left corner."""

    @property
    def mark_colours(self) -> Mapping[str, str]:
        """The colours in which these paths are filled, as "#rrggbb"; without one, a path is a black line."""

    @property
    def cell_names(self) -> Mapping[str, str]:
        """What the characters of things that change stand for, in words."""

    @property
    def set_kind(self) -> str:
        """What the names of evaluation sets are, such as "difficulty"."""

    def world(self, preset: str) -> Any:
        """The world that a preset trains in."""

    def spec(self, world: Any, tasks: TaskSet | None = None) -> EnvironmentSpec:
        """What agents must know of the world before they act; examples are of ``tasks``, or None: of the stream."""

    def training_tasks(self, world: Any, count: int, seed: int) -> TaskSet:
        """``count`` different training tasks; another seed gives another set."""

    def vector_env(self, num_envs: int, tasks: TaskSet | None, world: Any, *, one_each: bool = False) -> Worlds:
        """Environments that draw one of ``tasks`` per episode, or keep ``one_each``; None: a new task every episode."""

    def how_stepped(self, world: Any, tasks: TaskSet | None) -> str:
        """How ``vector_env`` steps these tasks, in words; empty where there is only one way."""

    def evaluation_names(self, world: Any) -> tuple[str, ...]:
        """Names of the evaluation sets."""

    def evaluation_tasks(self, world: Any, name: str, count: int, seed: int, split: str = "evaluation") -> TaskSet:
        """``count`` unseen tasks of the set ``name``; another seed gives other tasks.

        The tasks of the splits "evaluation" and "tuning" are disjoint where the family can promise it.
        """

    def training_evaluation(self, world: Any, tasks: TaskSet | None, count: int, seed: int) -> TaskSet:
        """Training tasks as they are evaluated; None: ``count`` tasks of the stream."""

    def success(self, reward: Array, terminated: Array) -> Array:
        """(B,) bool, whether a step with these rewards and terminations solved its task."""

    def draw(self, observation: Array) -> Array:
        """(h, w, 3) uint8 picture of an observation (W, H, C); cells are squares of equal size."""

    def board(self, tasks: TaskSet, row: int) -> Board:
        """The map of a task."""

    def detail(self, observation: Array) -> Detail | None:
        """What else an observation (W, H, C) shows, where the board does not tell it all."""

    def truth(self, tasks: TaskSet) -> TaskTruth | None:
        """Exact ground truth, where there is one."""

    def about(self, world: Any) -> dict[str, str]:
        """What readers of figures and pages should know of this world."""

    def caveat(self) -> str:
        """Why results on unseen tasks say less than they seem to; empty where they do not."""


@dataclass(frozen=True)
class NoOptions:
    """Command-line options of a family that has none."""

    def changed(self, world: Any) -> Any:
        """The world as it is."""
        return world


class BasicFamily:
    """Defaults for families: what is optional is absent. Derive from it and add the rest of ``Family``."""

    config_type: type[WorldConfig] = WorldConfig
    options_type: type[Any] = NoOptions
    cell_marks: Mapping[str, str] = {}
    mark_colours: Mapping[str, str] = {}
    cell_names: Mapping[str, str] = {}
    set_kind = "set"

    def world(self, preset: str) -> Any:
        """The same world for every preset."""
        return self.config_type()

    def how_stepped(self, world: Any, tasks: TaskSet | None) -> str:
        """There is only one way."""
        return ""

    def training_evaluation(self, world: Any, tasks: TaskSet | None, count: int, seed: int) -> TaskSet:
        """Training tasks are evaluated as they are."""
        if tasks is None:
            raise ValueError("this environment has no stream of tasks; train on a fixed number of them: --tasks N")
        return tasks

    def success(self, reward: Array, terminated: Array) -> Array:
        """(B,) bool, terminated with a reward."""
        solved: Array = terminated & (reward > 0)
        return solved

    def detail(self, observation: Array) -> Detail | None:
        """The board tells it all."""
        return None

    def truth(self, tasks: TaskSet) -> TaskTruth | None:
        """No ground truth."""
        return None

    def about(self, world: Any) -> dict[str, str]:
        """Nothing to say."""
        return {}

    def caveat(self) -> str:
        """There is none."""
        return ""


def sides(size: tuple[int, ...]) -> tuple[int, int]:
    """Width and height from the one or two numbers of ``--size``."""
    if len(size) not in (1, 2):
        raise ValueError(f"--size takes one or two numbers, got {len(size)}")
    return size[0], size[-1]


def with_size(world: Any, size: tuple[int, ...]) -> Any:
    """The world with another width and height, and with as much more time as its sides are longer."""
    width, height = sides(size)
    longer = max(1.0, (width + height) / (world.width + world.height))
    return replace(world, width=width, height=height, max_steps=round(longer * world.max_steps))


def has_size(world: Any) -> bool:
    """Whether a world has a width and a height."""
    return {"width", "height"} <= {entry.name for entry in fields(world)}


def _lava() -> Family:
    from skipper.envs.lava.family import LAVA

    return LAVA


def _need_minigrid() -> None:
    if find_spec("minigrid") is None:
        raise ValueError("MiniGrid is not installed; install it with: pip install 'skipper-rl[minigrid]'")


def _minigrid(env_id: str) -> Family:
    _need_minigrid()
    from skipper.envs.minigrid.family import minigrid_family

    return minigrid_family(env_id)


def find_catalogue(wanted: Callable[[str], bool]) -> Iterator[Any]:
    """What each of the ``wanted`` MiniGrid environments offers, or why it is refused."""
    _need_minigrid()
    from skipper.envs.minigrid.catalogue import catalogue
    from skipper.envs.minigrid.things import minigrid_ids

    return catalogue(name for name in minigrid_ids() if wanted(name))


DEFAULT_FAMILY = "lava"
# Loaded on demand: compiled environments take a while to import.
FAMILIES: dict[str, Callable[[], Family]] = {"lava": _lava}
# Families of a library with many environments: "minigrid:ID" is the family of one of them.
LIBRARIES: dict[str, Callable[[str], Family]] = {"minigrid": _minigrid}


def register_family(name: str, load: Callable[[], Family]) -> None:
    """Make a family known under ``name``; ``load`` is called when the family is needed."""
    FAMILIES[name] = load


def find_family(name: str) -> Family:
    """The family called ``name``."""
    library, found, one = name.partition(":")
    if found and library in LIBRARIES:
        return LIBRARIES[library](one)
    if name not in FAMILIES:
        raise ValueError(nearest_name("environment", name, [*FAMILIES, *(f"{library}:ID" for library in LIBRARIES)]))
    return FAMILIES[name]()
