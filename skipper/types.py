"""Types that all packages share: array shapes, steps of environments, plans, decisions and protocols.

Shape glossary: B batch, N tasks or vertices, T time, W H grid, C channels, S = W * H cells, A actions.
A cell is one number, ``x * H + y``, so that ``observation.reshape(S, C)[cell]`` is that cell.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from skipper.runtime.hashing import content_keys

Array = NDArray[Any]


class TimeStep(NamedTuple):
    """What a batch of agents observes before a decision."""

    observation: Array  # (B, W, H, C)
    goal: Array  # (B, W, H, C) the observation that the agent would have at the task's goal
    first: Array  # (B,) bool, True where a new episode begins here
    idle: Array | None = None  # (B,) bool, True where the action will not be used


class Scene(Protocol):
    """How an environment draws its agent. Agents that imagine states need it to draw them."""

    def scenery(self, observations: Array) -> Array:
        """(B, ...) the part of observations (B, W, H, C) that all states of a task share and other tasks do not."""

    def agent_cell(self, observations: Array) -> Array:
        """(B,) cells of the agents in observations (B, W, H, C)."""

    def goal_cell(self, observations: Array) -> Array:
        """(B,) the cells of the goals in observations (B, W, H, C)."""

    def place_agent(self, observations: Array, cells: Array) -> Array:
        """(B, N, W, H, C) the scenes of observations (B, W, H, C) with the agent at each of ``cells`` (B, N).

        For a ``DetailedScene`` these are placements, which say more than the cell.
        """


@runtime_checkable
class DetailedScene(Protocol):
    """What a scene offers beside ``Scene`` where more than the agent's cell changes within an episode.

    A placement is one number for all that changes, with one digit for each part (``runtime/mixed_radix.py``).
    """

    @property
    def parts(self) -> tuple[int, ...]:
        """How many values each part has: first the agent's cell, then such as its direction or the state of a door.

        A part with S values or more is a place as well: its first S values are cells.
        """

    def placement(self, observations: Array) -> Array:
        """(B,) the placements that observations (B, W, H, C) show."""


class Symmetries(NamedTuple):
    """Symmetric images of observations, in which the environment has the same rules once actions are renamed.

    The first of the G images is the original.
    """

    cells: Array  # (G, S) for each cell of an image, the cell of the original that it shows
    actions: Array  # (G, A) for each action of the original, the corresponding action in the image
    turned: Array | None = None  # (G, V) each value of the last channel in the image, where it shows a direction

    def images(self, observations: Array, which: Array) -> Array:
        """(B, W, H, C) the images ``which`` (B,) of observations (B, W, H, C)."""
        B, W, H, C = observations.shape  # noqa: N806
        shown = self.cells[which] + np.arange(B)[:, None] * (W * H)  # (B, S)
        images: Array = observations.reshape(B * W * H, C)[shown].reshape(observations.shape)
        if self.turned is not None:
            images[..., -1] = self.turned[which[:, None, None], images[..., -1]]
        return images


class Palette(NamedTuple):
    """Simplified pictures of an environment: every cell has one of a few colours."""

    colours: Array  # (K, 3) uint8
    classes: Callable[[Array], Array]  # observations (B, W, H, C) to the index of each cell's colour (B, W, H) int64
    agent: int  # index of the agent's own colour


class EnvironmentSpec(NamedTuple):
    """What an agent must know of an environment before it acts."""

    shape: tuple[int, int, int]  # W, H, C of an observation
    vocabulary: tuple[int, ...]  # how many values each channel can have
    actions: int
    longest: int  # steps of the longest episode
    state_key: Callable[[Array], Array] = content_keys  # (..., W, H, C) to (...,) int64, equal where states are
    scene: Scene | None = None  # where the environment can draw its agent elsewhere
    examples: Array | None = None  # (B, W, H, C) seen in training, for initialisation that depends on data
    oracle: "Oracle | None" = None  # ground truth, where it is known
    symmetries: Symmetries | None = None  # where it has any
    palette: Palette | None = None  # where it can be drawn without textures
    parts: tuple[int, ...] = ()  # of placements, where the scene is not at hand; () asks the scene
    gives_goals: bool = True  # whether ``TimeStep.goal`` is the goal; otherwise agents must find out


class Transition(NamedTuple):
    """One step of a batch of environments."""

    observation: Array  # (B, W, H, C)
    action: Array  # (B,)
    reward: Array  # (B,)
    next_observation: Array  # (B, W, H, C) the next state, also where the episode ended with it
    terminated: Array  # (B,) bool
    truncated: Array  # (B,) bool


class Attention(NamedTuple):
    """The k local fields of B observations that an agent attends to."""

    fields: Array  # (B, k, 4) the left and upper edge, width and height of each, in cells
    weight: Array  # (B, k) summing to 1


class Vertices(NamedTuple):
    """The N vertices of B proxy problems: the current state first, the goal last, checkpoints between them."""

    observation: Array  # (B, N, W, H, C)
    code: Array  # (B, N) partial descriptions
    present: Array  # (B, N) bool, False for a duplicate of another vertex
    key: Array  # (B, N) int64, equal where states are


CURRENT, GOAL = 0, -1  # indices of these two among the vertices of every problem


class Edges(NamedTuple):
    """Estimates for every ordered pair of vertices."""

    distance: Array  # (B, N, N) steps
    discount: Array  # (B, N, N)
    reward: Array  # (B, N, N)
    terminal: Array  # (B, N) bool, vertices that end the episode
    action: Array | None = None  # (B, N, N) first action of the policy, where it is known


class LazyEdges(NamedTuple):
    """Edges whose rewards are estimated on demand: pruning leaves few edges that need one."""

    distance: Array  # (B, N, N) steps
    discount: Array  # (B, N, N)
    terminal: Array  # (B, N) bool
    action: Array  # (B, N, N)
    reward: Callable[[Array], Array]  # edges (B, N, N) bool to their rewards (B, N, N), 0 elsewhere

    def where(self, usable: Array) -> Edges:
        """Edges with the rewards of those that are ``usable`` (B, N, N) bool."""
        return Edges(self.distance, self.discount, self.reward(usable), self.terminal, self.action)


class GraphView(NamedTuple):
    """The graph of one plan, for display: N vertices and the edges between them."""

    kept: Array  # (N,) bool, vertices that survived pruning
    terminal: Array  # (N,) bool
    value: Array  # (N,)
    worth: Array  # (N,) value of aiming at each vertex from the current state
    distance: Array  # (N, N)
    reward: Array  # (N, N), 0 where the edge was pruned
    status: Array  # (N, N) an EdgeStatus each
    trust: Array  # (N, N) factor of the revisit penalty, 1 where there is none
    merged: int  # duplicates that were merged into these vertices


class PlanView(NamedTuple):
    """One plan as figures, metrics, the viewer and exports read it, whatever made it."""

    states: Array  # (N, W, H, C) what the plan is made of: vertices or subgoals, the current state first
    route: list[int]  # indices of the states that the plan leads over, from the current one on
    target: int  # index of the state to go to next, -1 where there is none
    graph: GraphView | None = None  # where the plan was found on a graph
    picture: Array | None = None  # (h, w, 3) uint8, a goal decoded to a picture where it is no state
    forecast: Array | None = None  # (T, h, w, 3) uint8, the next steps as a world model predicts them


class Plan(Protocol):
    """The plans of B environments."""

    def view(self, row: int) -> PlanView:
        """The plan of one of them."""


class Decision(NamedTuple):
    """What an agent decided for a batch of time steps; metrics, plots and the viewer read only this."""

    action: Array  # (B,) int64
    target: Array | None = None  # (B, W, H, C) the states that agents with targets aim at
    planned: Array | None = None  # (B,) bool, where a new plan was made for this decision
    plan: Plan | None = None  # the new plans, in the order of the True entries of ``planned``
    reason: Array | None = None  # (B,) why a new plan was made, in words; empty where none was
    aiming: Array | None = None  # (B,) bool, where there is a target
    values: Array | None = None  # (B, A) estimated values of all actions, NaN where there are none
    attention: Attention | None = None  # where it was asked for


class Worlds(Protocol):
    """A Gymnasium vector environment with same-step autoreset whose state can be saved."""

    num_envs: int

    def reset(self, *, seed: int) -> tuple[Array, dict[str, Any]]:
        """First observations, and goal observations in ``info["goal"]``."""

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """As in Gymnasium; ``info["final_obs"]`` holds the last observations of episodes that ended."""

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides the future of the environments."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where ``state_dict`` was taken."""


class Agent(Protocol):
    """Anything that acts on batches of observations."""

    def act(self, timestep: TimeStep) -> Decision:
        """Choose one action per environment of the batch."""


class Learner(Agent, Protocol):
    """An agent that learns from its experience. The same seed and the same calls give the same learner."""

    def observe(self, transition: Transition) -> None:
        """Store what the last decision led to."""

    def ready(self) -> bool:
        """Whether there is anything to learn from yet."""

    def learn(self) -> Mapping[str, float]:
        """One gradient update; returns its losses and other metrics.

        The update may run in another process; reading the metrics waits for it.
        """

    def evaluator(self, rng: np.random.Generator) -> Agent:
        """The policy as it is evaluated, with a random stream and caches of its own: evaluation changes nothing."""

    def weights(self) -> dict[str, Array]:
        """What acting needs, by name."""

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides the future: nested dictionaries of arrays and JSON values."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where ``state_dict`` was taken."""


class Stage(NamedTuple):
    """A part of a run with its own budget."""

    name: str
    steps: int  # environment steps; the last stage lasts until the run ends
    charged: bool  # whether its steps count towards those of the run
    learning_starts: int | None = None  # environment steps before its first update; None: the run's setting


@runtime_checkable
class StagedLearner(Protocol):
    """What a learner offers beside ``Learner`` if it trains in stages."""

    def stages(self) -> tuple[Stage, ...]:
        """The stages, in order."""

    def begin_stage(self, name: str) -> None:
        """Called before the first step of each stage. A resumed learner knows its stage from its own state."""


class Oracle(Protocol):
    """Ground truth about observations, for the agents and metrics that need it."""

    def action_values(self, observations: Array, targets: Array | None = None) -> Array:
        """(B, A) optimal values of reaching ``targets`` (B, W, H, C), or the tasks' goals when None."""

    def distances(self, observations: Array, targets: Array) -> Array:
        """(B,) fewest steps from observations to targets, ``inf`` where there is no path."""

    def reachable(self, observations: Array) -> Array:
        """(B, S) bool, the non-terminal cells, or placements, that can be reached from observations (B, W, H, C)."""

    def edges(self, observations: Array, discount: float) -> tuple[Array, Array, Array, Array]:
        """True distance, discount and reward (B, N, N) of all pairs of states (B, N, W, H, C), and terminal (B, N)."""


def scene_of(spec: EnvironmentSpec) -> Scene:
    """The environment's scene, without which no states can be imagined."""
    if spec.scene is None:
        raise ValueError("this agent imagines states: the environment must offer a Scene")
    return spec.scene


def parts_of(spec: EnvironmentSpec) -> tuple[int, ...]:
    """How many values each part of a placement has; by default it is the agent's cell alone."""
    if spec.parts:
        return spec.parts
    if isinstance(spec.scene, DetailedScene):
        return spec.scene.parts
    return (spec.shape[0] * spec.shape[1],)


def placement_of(scene: Scene, observations: Array) -> Array:
    """(B,) what ``scene.place_agent`` needs to draw observations (B, W, H, C) again."""
    return scene.placement(observations) if isinstance(scene, DetailedScene) else scene.agent_cell(observations)


def oracle_of(spec: EnvironmentSpec) -> Oracle:
    """The environment's ground truth, without which oracle variants cannot act."""
    if spec.oracle is None:
        raise ValueError("this agent needs ground truth: the environment must offer an Oracle")
    return spec.oracle
