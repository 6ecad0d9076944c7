"""Vertices of proxy problems: the current state, checkpoints and the goal (Sec. 3.1 and 3.4)."""

import numpy as np
import torch

from skipper.agents.skipper.config import SkipperConfig
from skipper.agents.skipper.plan_state import PlanState
from skipper.nets.frozen import FrozenNetwork
from skipper.nets.layers import observations_tensor
from skipper.runtime.jit import kernel
from skipper.types import CURRENT, GOAL, Array, EnvironmentSpec, Vertices, oracle_of, scene_of


class VertexSource:
    """Proposes vertices: checkpoints are imagined by the generator, or random reachable states where these are true."""

    def __init__(
        self, frozen: FrozenNetwork, config: SkipperConfig, spec: EnvironmentSpec, rng: np.random.Generator
    ) -> None:
        self._frozen, self._config, self._spec, self._scene, self._rng = frozen, config, spec, scene_of(spec), rng

    def propose(
        self, observation: Array, goal: Array, *, environments: Array | None = None, checkpoints: int | None = None
    ) -> Vertices:
        """New vertices for observations and goals (B, W, H, C), by default with the configured ``checkpoints``.

        ``environments`` (B,) are the numbers of environments, in which similar vertices are proposed again.
        """
        planning = self._config.planning
        count = planning.checkpoints if checkpoints is None else checkpoints
        if "vertices" in planning.oracle_parts:
            return self._true_vertices(observation, goal, count)
        # Sample partial descriptions, and imagine the states that they describe in the current context.
        codes = distinct_codes(len(observation), count, self._config.generator.description_bits, self._rng)
        cells = self._frozen.imagine(observation, codes, environments)  # (B, count)
        states = self._with_endpoints(observation, cells, goal)
        # A checkpoint keeps the code that it was imagined from. Where observations are matched, codes are not needed.
        endpoints = np.full((2, len(observation)), -1)
        if not planning.match_observations:
            endpoints = self._frozen.describe(np.concatenate([observation, goal])).reshape(2, -1)
        codes = np.concatenate([endpoints[0, :, None], codes, endpoints[1, :, None]], axis=1)
        return self.merge(states, codes)

    def _true_vertices(self, observation: Array, goal: Array, count: int) -> Vertices:
        """Vertices whose ``count`` checkpoints are random reachable states, distinct if possible."""
        reachable = oracle_of(self._spec).reachable(observation)  # (B, S)
        order = np.where(reachable, self._rng.random(reachable.shape), 2.0).argsort(-1)  # reachable cells first
        number = np.maximum(reachable.sum(-1, keepdims=True), 1)
        cells = np.take_along_axis(order, np.arange(count)[None] % number, axis=1)  # (B, count)
        states = self._with_endpoints(observation, cells, goal)
        flat = observations_tensor(states.reshape(-1, *observation.shape[1:]))
        codes = self._frozen.network.generator.codes(flat).numpy()
        return self.merge(states, codes.reshape(states.shape[:2]))

    def _with_endpoints(self, observation: Array, cells: Array, goal: Array) -> Array:
        """(B, N, W, H, C) the current state, the states with the agent at ``cells`` (B, N - 2), and the goal."""
        imagined = self._scene.place_agent(observation, cells)
        return np.concatenate([observation[:, None], imagined, goal[:, None]], axis=1)

    def keep_checkpoints(self, fresh: Vertices, plans: PlanState, rows: Array, first: Array) -> Vertices:
        """The vertices of the episode's earlier plans with a new current state; ``fresh`` where an episode begins.

        ``rows`` (R,) are the environments, ``first`` (R,) bool says where an episode begins.
        """
        states = np.where(first[:, None, None, None, None], fresh.observation, plans.vertices[rows])
        codes = np.where(first[:, None], fresh.code, plans.codes[rows])
        states[:, CURRENT], codes[:, CURRENT] = fresh.observation[:, CURRENT], fresh.code[:, CURRENT]
        # Vertices that an earlier plan of the episode pruned stay pruned.
        kept = np.where(first[:, None], fresh.present, plans.kept[rows])
        kept[:, [CURRENT, GOAL]] = True
        merged = self.merge(states, codes)
        return merged._replace(present=merged.present & kept)

    def merge(self, observation: Array, code: Array) -> Vertices:
        """States (B, N, W, H, C) with codes (B, N) as vertices, of which duplicates are not present."""
        return merge_vertices(observation, code, self._spec.state_key(observation))

    @torch.no_grad()
    def goal(self, observation: Array, given: Array) -> Array:
        """(B, W, H, C) the goal that was ``given``, or the state in which the network expects a reward."""
        if self._frozen.network.goal is None:
            return given
        cell = self._frozen.network.goal(observations_tensor(observation)).argmax(-1).numpy()
        return self._scene.place_agent(observation, cell[:, None])[:, 0]


def merge_vertices(observation: Array, code: Array, key: Array) -> Vertices:
    """States (B, N, W, H, C) as vertices; of those with equal ``key`` (B, N) one is present.

    The current state and the goal always are.
    """
    return Vertices(observation, code, _is_unique(key), key)


@kernel
def _is_unique(key):
    """(B, N) bool, False for checkpoints that equal an earlier vertex or the goal."""
    unique, last = np.ones(key.shape, np.bool_), key.shape[1] - 1
    for problem in range(len(key)):
        for vertex in range(1, last):
            for other in range(vertex):
                if key[problem, other] == key[problem, vertex]:
                    unique[problem, vertex] = False
            if key[problem, last] == key[problem, vertex]:
                unique[problem, vertex] = False
    return unique


def distinct_codes(problems: int, count: int, bits: int, rng: np.random.Generator) -> Array:
    """(problems, count) codes, distinct within a problem, each set equally likely."""
    total = 2**bits
    if count > total:
        raise ValueError(f"{bits} bits give only {total} codes, but {count} distinct ones were requested")
    return rng.permuted(np.tile(np.arange(total), (problems, 1)), axis=1)[:, :count]
