"""Checkpoints: imagining them, and remembering which one is being walked to."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from skipper.agents.learning_core import observations_tensor
from skipper.agents.skipper.config import SkipperConfig
from skipper.nets.estimators import EstimatorNetwork, PartialTable
from skipper.nets.generator import CheckpointGenerator, GoalGenerator
from skipper.nets.layers import WeightsWatch
from skipper.planning.proxy import Vertices, merged_vertices
from skipper.runtime.hashing import content_hashes
from skipper.types import Array, EnvironmentSpec, Scene

LONG_AGO = 1_000_000
REMEMBERED = 16_384  # partial states


class SkipperNetwork(nn.Module):
    """Everything that Skipper learns."""

    def __init__(self, config: SkipperConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        self.estimators = EstimatorNetwork(config.network, spec)
        self.generator = CheckpointGenerator(config.generator, spec)
        self.goal = GoalGenerator(config.generator, spec) if config.generator.learned_goal else None


def imagined_cells(generator: CheckpointGenerator, observation: Array, codes: Array) -> Array:
    """(B, N) where the agent is in the states that ``codes`` (B, N) describe in the contexts of ``observation``."""
    return generator.imagine(observations_tensor(observation), torch.from_numpy(codes)).argmax(-1).numpy()


def imagined_vertices(
    scene: Scene, ends: tuple[Array, Array], cells: Array, codes: Array, describe: Callable[[Array], Array] | None
) -> Vertices:
    """The current states and goals ``ends`` (B, ...), and between them states with the agent at ``cells`` (B, N).

    An imagined state keeps the code that it was imagined from; ``describe`` gives the codes of the ends. Where states
    are compared whole it is None and nothing is described.
    """
    observation, goal = ends
    imagined = scene.place_agent(observation, cells)
    states = np.concatenate([observation[:, None], imagined, goal[:, None]], axis=1)
    if describe is None:
        end_codes = np.full((2, len(observation)), -1)
    else:
        end_codes = describe(np.concatenate(ends)).reshape(2, -1)
    all_codes = np.concatenate([end_codes[0, :, None], codes, end_codes[1, :, None]], axis=1)
    return merged_vertices(states, all_codes)


class Descriptions:
    """Partial descriptions, remembered while the weights stay the same.

    A goal is described once in an episode, and a current state once for both uses: is it a checkpoint, and planning.
    """

    def __init__(self, generator: CheckpointGenerator, capacity: int = 4096) -> None:
        self._generator, self._capacity = generator, capacity
        self._known: dict[int, int] = {}
        self._watch = WeightsWatch(generator.description)

    def __call__(self, states: Array) -> Array:
        """(B, W, H, C) to codes (B,)."""
        if self._watch.changed() or len(self._known) > self._capacity:
            self._known = {}
            self._watch.note()
        keys = content_hashes(states.reshape(len(states), -1)).tolist()
        new = {key: row for row, key in enumerate(keys) if key not in self._known}
        if new:
            self._known.update(zip(new, describe_states(self._generator, states[list(new.values())]), strict=True))
        return np.array([self._known[key] for key in keys])

    def state_dict(self) -> dict[str, Any]:
        """What is remembered of the generator as it is."""
        known = {} if self._watch.changed() else self._known
        keys, codes = list(known.keys()), list(known.values())
        return {"keys": np.array(keys, np.int64), "codes": np.array(codes, np.int64)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Remember it again; the generator must have its weights already."""
        self._known = dict(zip(state["keys"].tolist(), state["codes"].tolist(), strict=True))
        self._watch.note()


def describe_states(generator: CheckpointGenerator, states: Array) -> Array:
    """(B, W, H, C) to codes (B,)."""
    return generator.codes(observations_tensor(states)).numpy()


class Memory:
    """What networks that stand still need not compute twice: partial states and descriptions."""

    def __init__(self, network: SkipperNetwork, width: int, ensemble_size: int = 1) -> None:
        """There is room for ``ensemble_size`` symmetric images of a state, which are asked for estimates."""
        self.ensemble_size = ensemble_size
        self.partial = PartialTable(network.estimators, width, ensemble_size * REMEMBERED)
        self.describe = Descriptions(network.generator)

    def state_dict(self) -> dict[str, Any]:
        """All that is remembered: computed again in another batch, it might round differently."""
        return {"partial": self.partial.state_dict(), "descriptions": self.describe.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Remember it again; the networks must have their weights already."""
        self.partial.load_state_dict(state["partial"])
        self.describe.load_state_dict(state["descriptions"])


def true_vertices(
    generator: CheckpointGenerator,
    scene: Scene,
    ends: tuple[Array, Array],
    reachable: Array,
    rng: np.random.Generator,
    count: int,
) -> Vertices:
    """As ``imagined_vertices``, with ``count`` random ones of the reachable cells (B, S), different if possible."""
    observation, goal = ends
    order = np.where(reachable, rng.random(reachable.shape), 2.0).argsort(-1)  # reachable cells first
    number = np.maximum(reachable.sum(-1, keepdims=True), 1)
    cells = np.take_along_axis(order, np.arange(count)[None] % number, axis=1)  # (B, count)
    states = np.concatenate([observation[:, None], scene.place_agent(observation, cells), goal[:, None]], axis=1)
    flat = observations_tensor(states.reshape(-1, *observation.shape[1:]))
    return merged_vertices(states, generator.codes(flat).numpy().reshape(states.shape[:2]))


class PlanState(NamedTuple):
    """What B environments remember between decisions; N vertices each."""

    vertices: Array  # (B, N, W, H, C) of the last plan
    codes: Array  # (B, N)
    kept: Array  # (B, N) bool
    target: Array  # (B, W, H, C)
    target_code: Array  # (B,)
    planned_code: Array  # (B,) the code of the state in which the plan was made
    steps: Array  # (B,) since then
    aiming: Array  # (B,) bool, whether there is a target at all
    visited: Array  # (B, T) identities of the episode's states so far
    taken: Array  # (B, T) actions that were chosen there, -1 where there is none yet
    length: Array  # (B,) of the episode so far

    def begin(self, first: Array) -> None:
        """Forget the last episode where a new one begins."""
        self.taken[first], self.length[first] = -1, 0

    def note(self, identity: Array, action: Array) -> None:
        """Remember what was chosen, (B,) each; an episode that is longer than expected overwrites its end."""
        rows, place = np.arange(len(action)), np.minimum(self.length, self.taken.shape[1] - 1)
        self.visited[rows, place], self.taken[rows, place] = identity, action
        self.length[:] += 1

    def tried(self, rows: Array, identity: Array, actions: int) -> Array:
        """(R, N, A) how often each action was chosen in the states ``identity`` (R, N) of the environments ``rows``."""
        length = int(self.length[rows].max(initial=0))
        here = self.visited[rows, None, :length] == identity[..., None]  # (R, N, T)
        taken = self.taken[rows, :length, None] == np.arange(actions)  # (R, T, A)
        return here.astype(np.float32) @ taken.astype(np.float32)


def new_plan_state(environments: int, vertices: int, shape: tuple[int, int, int], longest: int) -> PlanState:
    """Nothing remembered yet, of episodes with at most ``longest`` steps."""
    return PlanState(
        vertices=np.zeros((environments, vertices, *shape), np.uint8),
        codes=np.full((environments, vertices), -1),
        kept=np.zeros((environments, vertices), bool),
        target=np.zeros((environments, *shape), np.uint8),
        target_code=np.full(environments, -1),
        planned_code=np.full(environments, -1),
        steps=np.full(environments, LONG_AGO),
        aiming=np.zeros(environments, bool),
        visited=np.zeros((environments, longest), np.int64),
        taken=np.full((environments, longest), -1, np.int8),
        length=np.zeros(environments, np.int64),
    )


def plan_state_arrays(walk: PlanState) -> dict[str, Any]:
    """A copy to be saved."""
    return {name: column.copy() for name, column in walk._asdict().items()}
