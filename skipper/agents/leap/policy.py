"""LEAP's decisions: find subgoals once in an episode, then walk to one of them or to the goal (App., "LEAP")."""

import numpy as np

from skipper.agents.exploration import explore
from skipper.agents.leap.chain_state import ChainState
from skipper.agents.leap.config import LeapConfig
from skipper.agents.leap.subgoals import Chains, SubgoalSource, choose_again
from skipper.agents.learning_core import load_module_state
from skipper.agents.target_actor import TargetActor
from skipper.agents.target_config import GOAL_FRACTION
from skipper.nets.estimators import LeapNetwork
from skipper.nets.frozen import FrozenNetwork
from skipper.nets.layers import seeded_initialisation
from skipper.types import Array, Decision, Edges, EnvironmentSpec, TimeStep, Vertices, oracle_of, scene_of


class LeapPolicy:
    """Decides for a batch of environments: plans when episodes begin, and takes the action of least distance."""

    def __init__(
        self,
        frozen: FrozenNetwork,
        config: LeapConfig,
        spec: EnvironmentSpec,
        rng: np.random.Generator,
        *,
        explain: bool = False,
    ) -> None:
        """With ``explain``, decisions also hold the attention of the selector."""
        self.frozen, self.network, self.config, self.spec, self.rng = frozen, frozen.network, config, spec, rng
        self.subgoal_source = SubgoalSource(frozen, config, spec, rng)
        self._penalty = config.decision.revisit_penalty
        self._attend = frozen.network.estimators.partial.attend if explain else None
        self.plan_state: ChainState | None = None

    # Decisions

    def act(self, timestep: TimeStep, epsilon: float, rng: np.random.Generator) -> Decision:
        """Decide, or take a random action with probability ``epsilon``."""
        decision = self.decide(timestep)
        decision = decision._replace(action=explore(decision.action, epsilon, self.spec.actions, rng))
        if self._penalty > 0:
            assert self.plan_state is not None
            self.plan_state.visits.record(self.spec.state_key(timestep.observation), decision.action)
        return decision

    def decide(self, timestep: TimeStep) -> Decision:
        """Targets and greedy actions."""
        B, config = len(timestep.observation), self.config.planning  # noqa: N806
        if self.plan_state is None or len(self.plan_state.aim) != B:
            self.plan_state = ChainState.empty(B, config.subgoals, self.spec.shape, self.spec.longest)
        state = self.plan_state
        state.begin_episodes(timestep.first)
        active = np.ones(B, bool) if timestep.idle is None else ~timestep.idle
        # Is it time to plan, or to choose again among the subgoals and the goal?
        new, again, reason = self._due(state, timestep.observation, active)
        # Find subgoals; aim at the first (App. "LEAP").
        if new.any():
            rows = np.flatnonzero(new)
            state.take_over(rows, self.plan(timestep.observation[rows], timestep.goal[rows]))
        # Choose the subgoal over which the rest of the chain is shortest, or the goal itself.
        if again.any():
            self._choose_again(state, np.flatnonzero(again), timestep.observation[again])
        state.steps[:] += 1
        # Take the action of least distance to the target.
        action, values = np.zeros(B, np.int64), np.full((B, self.spec.actions), np.nan)
        if active.any():
            rows = np.flatnonzero(active)
            values[rows] = self.action_values(timestep.observation[rows], state.target[rows])
            if self._penalty > 0:  # no plan can lead around what was tried before
                key = self.spec.state_key(timestep.observation[rows])[:, None]
                values[rows] *= state.visits.factors(rows, key, self.spec.actions, self._penalty)[:, 0]
            action[rows] = values[rows].argmax(-1)
        planned = new | again
        plan = state.chains(np.flatnonzero(planned), new[planned]) if planned.any() else None
        attention = self._attend(timestep.observation) if self._attend else None
        return Decision(action, state.target.copy(), planned, plan, reason, active.copy(), values, attention)

    def _due(self, state: ChainState, observation: Array, active: Array) -> tuple[Array, Array, Array]:
        """(B,) bool where a chain is to be found and where a target is to be chosen again, and (B,) why, in words."""
        new = active & (state.aim == 0)
        following = active & ~new
        key, subgoals = self.spec.state_key(observation), self.spec.state_key(state.state[:, 1:-1])
        met = following & (subgoals == key[:, None]).any(-1)
        late = following & (state.steps >= self.config.planning.timeout)
        conditions = {"the episode begins": new, "a subgoal was reached": met, "time ran out": late}
        return new, met | late, np.select(list(conditions.values()), list(conditions), default="")

    def _choose_again(self, state: ChainState, rows: Array, observation: Array) -> None:
        """New targets for the environments ``rows`` (R,) among the states of their chains."""
        candidates = state.state[rows, 1:]  # (R, M + 1, W, H, C) subgoals and goal
        to_targets = self.subgoal_source.to_targets(observation, candidates)
        if self.config.planning.exclude_reached:
            here = self.spec.state_key(candidates) == self.spec.state_key(observation)[:, None]
            here[:, -1] = False
            to_targets = np.where(here, np.inf, to_targets)
        chosen = choose_again(to_targets, state.distance[rows, 1:])
        state.aim_again(rows, observation, to_targets[np.arange(len(rows)), chosen], 1 + chosen)

    def plan(self, observation: Array, goal: Array) -> Chains:
        """New chains for observations and goals (B, W, H, C)."""
        return self.subgoal_source.plan(observation, goal)

    def edges(self, vertices: Vertices) -> Edges:
        """Distances for all pairs of vertices, which need not belong to one plan; LEAP does not estimate rewards."""
        edges = self.frozen.edges(vertices)
        return Edges(edges.distance, edges.discount, np.full(edges.distance.shape, np.nan), edges.terminal)

    # The policy

    def action_values(self, observation: Array, target: Array) -> Array:
        """(B, A) nearness of the target after each action, from 0 to 1."""
        if "policy" in self.config.planning.oracle_parts:
            return oracle_of(self.spec).action_values(observation, target)
        return self.frozen.values(observation, target)

    def follow(self, observation: Array, target: Array) -> Array:
        """(B,) greedy actions."""
        return self.action_values(observation, target).argmax(-1)


class RandomTargetPolicy(LeapPolicy):
    """Walks to random imagined states, and sometimes to the goal, instead of planned ones: how Skipper explores."""

    def plan(self, observation: Array, goal: Array) -> Chains:
        """A random target and nothing behind it: chains of one state, over and over."""
        codes = self.rng.integers(2**self.config.generator.description_bits, size=(len(observation), 1))
        cells = self.frozen.imagine(observation, codes)
        target = scene_of(self.spec).place_agent(observation, cells)[:, 0]
        is_goal = self.rng.random(len(observation)) < GOAL_FRACTION
        target = np.where(is_goal[:, None, None, None], goal, target)
        subgoals = np.repeat(target[:, None], self.config.planning.subgoals + 1, axis=1)
        segments, ones = np.zeros(subgoals.shape[:2]), np.ones(len(observation), np.int64)
        return Chains(np.concatenate([observation[:, None], subgoals], axis=1), segments, ones, ones.astype(bool))

    def _due(self, state: ChainState, observation: Array, active: Array) -> tuple[Array, Array, Array]:
        new, again, reason = super()._due(state, observation, active)
        return new | again, np.zeros_like(again), reason  # another target, not the same again


class LeapActor(TargetActor[Chains]):
    """LEAP as it is evaluated."""

    policy: LeapPolicy


def play_leap(
    config: LeapConfig,
    spec: EnvironmentSpec,
    weights: dict[str, Array],
    rng: np.random.Generator,
    *,
    explain: bool = False,
) -> LeapActor:
    """An agent that acts with saved weights, without anything that only training needs."""
    with seeded_initialisation(0):  # any seed: all weights are replaced
        network = LeapNetwork(config, spec)
    load_module_state(network, weights)
    return evaluation_actor(network, config, spec, rng, explain=explain)


def evaluation_actor(
    network: LeapNetwork,
    config: LeapConfig,
    spec: EnvironmentSpec,
    rng: np.random.Generator,
    *,
    explain: bool = False,
) -> LeapActor:
    """The agent as it is evaluated, with a network that does not learn meanwhile."""
    frozen = FrozenNetwork(network, config, spec, ensemble=config.decision.ensemble)
    policy = LeapPolicy(frozen, config, spec, rng, explain=explain)
    return LeapActor(policy, config.learning.epsilon_evaluation)
