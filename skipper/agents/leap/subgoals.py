"""Chains of subgoals: imagined states, searched for the chain whose longest segment is shortest (App., "LEAP")."""

from typing import NamedTuple

import numpy as np

from skipper.agents.leap.config import LeapConfig, LeapPlanningConfig
from skipper.agents.reachable import reachable_cells
from skipper.nets.frozen import FrozenNetwork
from skipper.planning.cem import search
from skipper.types import CURRENT, GOAL, Array, EnvironmentSpec, PlanView, Vertices, oracle_of, scene_of


class Chains(NamedTuple):
    """The plans of B environments: from the current state over M subgoals to the goal, or over the last of these."""

    state: Array  # (B, M + 2, W, H, C) the current state, all subgoals and the goal
    distance: Array  # (B, M + 1) from the current state to the target, and from each subgoal to the state after it
    target: Array  # (B,) index of the state to go to
    found: Array  # (B,) bool, whether the subgoals are new; False where only the target was chosen again

    @property
    def targets(self) -> Array:
        """(B, W, H, C) the states to go to."""
        return self.state[np.arange(len(self.state)), self.target]

    def view(self, row: int) -> PlanView:
        """One plan."""
        states, target = self.state[row], int(self.target[row])
        return PlanView(states, [CURRENT, *range(target, len(states))], target)


class SubgoalSource:
    """Finds chains of subgoals, with learned estimates or with ground truth in place of some of them."""

    def __init__(
        self, frozen: FrozenNetwork, config: LeapConfig, spec: EnvironmentSpec, rng: np.random.Generator
    ) -> None:
        self._frozen, self._config, self._spec, self._rng = frozen, config, spec, rng
        self._scene, self._bits = scene_of(spec), config.generator.description_bits

    def plan(self, observation: Array, goal: Array) -> Chains:
        """New chains for observations and goals (B, W, H, C); their first subgoals are the targets."""
        B, config = len(observation), self._config.planning  # noqa: N806
        # Imagine the states of all codes, and estimate all distances between them once: sequences share them.
        states = self.imagine_all(observation, goal)  # (B, N, W, H, C)
        distance, terminal = self.distances(states)
        length = segment_lengths(distance, terminal, config)
        # Search for sequences of codes (App. "LEAP").
        found = search(lambda rows, codes: chain_cost(length[rows], codes), B, self._bits, config, self._rng)
        # Aim at the first subgoal, even where the goal is nearer.
        chain = np.concatenate([np.zeros((B, 1), int), 1 + found.codes, np.full((B, 1), states.shape[1] - 1)], axis=1)
        rows = np.arange(B)[:, None]
        distance = length[rows, chain[:, :-1], chain[:, 1:]]
        return Chains(states[rows, chain], distance, np.ones(B, np.int64), np.ones(B, bool))

    def imagine_all(self, observation: Array, goal: Array) -> Array:
        """(B, N, W, H, C) the current state, the state that every code describes, and the goal."""
        B, count = len(observation), 2**self._bits  # noqa: N806
        if "vertices" in self._config.planning.oracle_parts:
            cells = reachable_cells(oracle_of(self._spec), observation, count, self._rng)
        else:
            cells = self._frozen.imagine(observation, np.tile(np.arange(count), (B, 1)))
        imagined = self._scene.place_agent(observation, cells)
        return np.concatenate([observation[:, None], imagined, goal[:, None]], axis=1)

    def distances(self, states: Array) -> tuple[Array, Array]:
        """Distances (B, N, N) of all pairs of states (B, N, W, H, C), and which states are terminal, (B, N) bool."""
        if "edges" in self._config.planning.oracle_parts:
            true, *_, terminal = oracle_of(self._spec).edges(states, self._config.learning.task_discount)
            return np.clip(true, 1.0, self._config.network.bins), terminal
        # Codes can describe the same state, which is estimated once.
        key = self._spec.state_key(states)
        same = (key[:, :, None] == key[:, None, :]).argmax(-1)  # (B, N) index of the first state with the same key
        present = same == np.arange(key.shape[1])
        edges = self._frozen.edges(Vertices(states, np.full(key.shape, -1), present, key))
        rows = np.arange(len(key))[:, None]
        return edges.distance[rows[..., None], same[:, :, None], same[:, None, :]], edges.terminal[rows, same]

    def to_targets(self, observation: Array, targets: Array) -> Array:
        """(B, M) distances from observations (B, W, H, C) to targets (B, M, W, H, C)."""
        B, M = targets.shape[:2]  # noqa: N806
        states = np.concatenate([observation[:, None], targets], axis=1)
        if "edges" in self._config.planning.oracle_parts:
            return self.distances(states)[0][:, CURRENT, 1:]
        value = self._frozen.values(np.repeat(observation, M, axis=0), targets.reshape(-1, *targets.shape[2:]))
        return distance_of_nearness(value.max(-1), self._config.network.bins).reshape(B, M)


def distance_of_nearness(nearness: Array, bins: int) -> Array:
    """Distances from the values of the policy, which are 1 for one step and 0 for the most that can be expressed."""
    distance: Array = bins - (bins - 1) * nearness
    return distance


def segment_lengths(distance: Array, terminal: Array, config: LeapPlanningConfig) -> Array:
    """(B, N, N) distances, but ``terminal_distance`` where the first state is terminal."""
    return np.where(terminal[:, :, None], config.terminal_distance, distance)


def chain_cost(length: Array, codes: Array) -> Array:
    """(B, P) the longest segment of every sequence of codes (B, P, M), from segment lengths (B, N, N)."""
    rows = np.arange(len(length))[:, None, None]
    first, last = np.zeros_like(codes[..., :1]), np.full_like(codes[..., :1], length.shape[1] + GOAL)
    chain = np.concatenate([first, 1 + codes, last], axis=-1)  # (B, P, M + 2)
    longest: Array = length[rows, chain[..., :-1], chain[..., 1:]].max(-1)
    return longest


def choose_again(to_targets: Array, distance: Array) -> Array:
    """(B,) which of the M subgoals and the goal to go to: the least total length over it to the goal.

    ``to_targets`` (B, M + 1) are the distances from the current state, ``distance`` (B, M) those of the segments that
    follow each subgoal.
    """
    assert to_targets.shape == (len(distance), distance.shape[1] + 1), (to_targets.shape, distance.shape)
    after = np.zeros_like(to_targets)
    after[:, :-1] = distance[:, ::-1].cumsum(-1)[:, ::-1]
    return (to_targets + after).argmin(-1)
