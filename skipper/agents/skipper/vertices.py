"""Vertices of proxy problems: the current state, checkpoints and the goal (Sec. 3.1 and 3.4)."""

import numpy as np
import torch

from skipper.agents.reachable import reachable_cells
from skipper.agents.skipper.config import SkipperConfig
from skipper.agents.skipper.plan_state import PlanState
from skipper.nets.estimators import SkipperNetwork
from skipper.nets.frozen import FrozenNetwork
from skipper.nets.layers import observations_tensor
from skipper.runtime.jit import kernel
from skipper.runtime.mixed_radix import most_likely
from skipper.types import CURRENT, GOAL, Array, EnvironmentSpec, Vertices, oracle_of, parts_of, scene_of


class VertexSource:
    """Proposes vertices: checkpoints are imagined by the generator, or random reachable states where these are true."""

    def __init__(
        self, frozen: FrozenNetwork, config: SkipperConfig, spec: EnvironmentSpec, rng: np.random.Generator
    ) -> None:
        self._frozen, self._config, self._spec, self._rng = frozen, config, spec, rng
        self._scene, self._parts = scene_of(spec), parts_of(spec)

    def propose(
        self, observation: Array, goal: Array, *, environments: Array | None = None, checkpoints: int | None = None
    ) -> Vertices:
        """New vertices for observations and goals (B, W, H, C), by default with the configured ``checkpoints``.

        ``environments`` (B,) are the numbers of environments, in which similar vertices are proposed again.
        """
        count = self._config.planning.checkpoints if checkpoints is None else checkpoints
        return self.describe(self._new_states(observation, goal, environments, count))

    def _new_states(self, observation: Array, goal: Array, environments: Array | None, count: int) -> Array:
        """(B, N, W, H, C) the current state, ``count`` new checkpoints, and the goal."""
        if "vertices" in self._config.planning.oracle_parts:
            cells = reachable_cells(oracle_of(self._spec), observation, count, self._rng)
            return self._with_endpoints(observation, cells, goal)
        # Sample partial descriptions, and imagine the states that they describe in the current context.
        codes = distinct_codes(len(observation), count, self._config.generator.description_bits, self._rng)
        cells = self._frozen.imagine(observation, codes, environments)  # (B, count)
        return self._with_endpoints(observation, cells, goal)

    def _with_endpoints(self, observation: Array, cells: Array, goal: Array) -> Array:
        """(B, N, W, H, C) the current state, the states with the agent at ``cells`` (B, N - 2), and the goal."""
        imagined = self._scene.place_agent(observation, cells)
        return np.concatenate([observation[:, None], imagined, goal[:, None]], axis=1)

    def keep_or_propose(self, observation: Array, goal: Array, plans: PlanState, rows: Array) -> Vertices:
        """The checkpoints of the episode with a new current state, for observations and goals (R, W, H, C).

        ``rows`` (R,) are the environments; those whose episodes have no checkpoints yet get new ones.
        """
        states, remaining = plans.vertices[rows], plans.remaining[rows]
        new = ~remaining.any(-1)
        if new.any():
            count = self._config.planning.checkpoints
            states[new] = self._new_states(observation[new], goal[new], rows[new], count)
            remaining[new] = True
        states[:, CURRENT] = observation
        # Only the episode's first plan prunes for good. A checkpoint that the agent stands on is merged this time.
        vertices = self.describe(states)
        return vertices._replace(present=vertices.present & remaining)

    def describe(self, states: Array) -> Vertices:
        """States (B, N, W, H, C) as vertices, with the codes that the network gives them now.

        Imagined states are described again: the generator may have drawn another state than the sampled code
        describes. Where observations are matched no decision depends on codes, and all are -1.
        """
        codes = np.full(states.shape[:2], -1)
        if not self._config.planning.match_observations:
            codes = self._frozen.describe(states.reshape(-1, *states.shape[2:])).reshape(codes.shape)
        return merge_vertices(states, codes, self._spec.state_key(states))

    @torch.no_grad()
    def goal(self, observation: Array, given: Array) -> Array:
        """(B, W, H, C) the goal that was ``given``, or the state in which the network expects a reward."""
        network = self._frozen.network
        assert isinstance(network, SkipperNetwork)
        if network.goal is None:
            return given
        logits = network.goal(observations_tensor(observation)).cpu().numpy()
        return self._scene.place_agent(observation, most_likely(logits, self._parts)[:, None])[:, 0]


def merge_vertices(observation: Array, code: Array, key: Array) -> Vertices:
    """States (B, N, W, H, C) as vertices; of those with equal ``key`` (B, N) one is present.

    The current state and the goal always are. Different states stay apart where they share a ``code`` (B, N).
    """
    return Vertices(observation, code, _is_unique(key), key)


def hidden_checkpoints(vertices: Vertices) -> Array:
    """(B, N) bool, one of the checkpoints that equal the current state and were merged into it, where there is any."""
    same: Array = (vertices.key == vertices.key[:, [CURRENT]]) & (vertices.key != vertices.key[:, [GOAL]])
    same[:, CURRENT] = False
    return same & (same.cumsum(-1) == 1)


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
