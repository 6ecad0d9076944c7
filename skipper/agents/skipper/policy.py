"""Skipper's decisions: plan over checkpoints, then follow the checkpoint policy to the target (Sec. 3, Alg. 1)."""

import numpy as np

from skipper.agents.exploration import explore
from skipper.agents.learning_core import load_module_state
from skipper.agents.skipper.config import SkipperConfig
from skipper.agents.skipper.edges import EdgeSource
from skipper.agents.skipper.plan_state import PlanState
from skipper.agents.skipper.vertices import VertexSource, hidden_checkpoints
from skipper.agents.target_actor import TargetActor
from skipper.agents.target_config import GOAL_FRACTION
from skipper.nets.estimators import SkipperNetwork
from skipper.nets.frozen import FrozenNetwork
from skipper.nets.layers import seeded_initialisation
from skipper.planning.proxy import ProxyProblem, solve
from skipper.types import CURRENT, Agent, Array, Decision, Edges, EnvironmentSpec, TimeStep, Vertices, oracle_of


class SkipperPolicy:
    """Decides for a batch of environments: plans where it is time to, and follows the checkpoint policy."""

    def __init__(
        self,
        frozen: FrozenNetwork,
        config: SkipperConfig,
        spec: EnvironmentSpec,
        rng: np.random.Generator,
        *,
        random_targets: bool = False,
        explain: bool = False,
    ) -> None:
        """With ``random_targets`` targets are random checkpoints instead of planned ones.

        With ``explain``, decisions also hold the attention of the selector.
        """
        self.frozen, self.network, self.config, self.spec, self.rng = frozen, frozen.network, config, spec, rng
        self.vertex_source = VertexSource(frozen, config, spec, rng)
        self.edge_source = EdgeSource(frozen, config, spec)
        self._random_targets = random_targets
        self._penalty = config.decision.revisit_penalty
        self._attend = frozen.network.estimators.partial.attend if explain else None
        self.plan_state: PlanState | None = None

    # Decisions

    def act(self, timestep: TimeStep, epsilon: float, rng: np.random.Generator) -> Decision:
        """Decide, or take a random action with probability ``epsilon`` (Alg. 1, "decided to explore")."""
        if self.config.planning.replan_after_exploring:
            decision = self.decide(timestep, rng.random(len(timestep.first)) < epsilon)
        else:
            decision = self.decide(timestep)
            decision = decision._replace(action=explore(decision.action, epsilon, self.spec.actions, rng))
        if self._penalty > 0:
            assert self.plan_state is not None
            self.plan_state.visits.record(self.spec.state_key(timestep.observation), decision.action)
        return decision

    def decide(self, timestep: TimeStep, exploring: Array | None = None) -> Decision:
        """Targets and greedy actions; random actions where the current state has no edge, and where ``exploring`` (B,).

        No plan is made where the agent explores.
        """
        B, config = len(timestep.observation), self.config.planning  # noqa: N806
        if self.plan_state is None or len(self.plan_state.steps) != B:
            self.plan_state = PlanState.empty(B, config.checkpoints + 2, self.spec.shape, self.spec.longest)
        plans = self.plan_state
        plans.begin_episodes(timestep.first)
        # Is it time to plan (Alg. 1, "if abstract problem just constructed or a checkpoint / timeout reached")?
        active = np.ones(B, bool) if timestep.idle is None else ~timestep.idle
        if exploring is not None:
            active &= ~exploring
        reason = np.where(active, self._reason_to_plan(plans, timestep, active), "")
        planned = reason != ""
        # Construct and solve proxy problems, and take over their targets (Alg. 1, "subroutine", "value iteration").
        problem = self._new_targets(plans, timestep, np.flatnonzero(planned)) if planned.any() else None
        plans.steps[:] += 1
        # Follow the checkpoint policy (Alg. 1, "follow the action suggested by the checkpoint-achieving policy").
        action, values = self.rng.integers(self.spec.actions, size=B), np.full((B, self.spec.actions), np.nan)
        aiming = active & plans.aiming
        if aiming.any():
            values[aiming] = self.action_values(timestep.observation[aiming], plans.target[aiming])
            if config.always_goal and self._penalty > 0:  # no plan can lead around what was tried before
                rows, key = np.flatnonzero(aiming), self.spec.state_key(timestep.observation[aiming])[:, None]
                values[aiming] *= plans.visits.factors(rows, key, self.spec.actions, self._penalty)[:, 0]
            action[aiming] = values[aiming].argmax(-1)
        plans.explored[:] = False if exploring is None else exploring
        attention = self._attend(timestep.observation) if self._attend else None
        return Decision(action, plans.target.copy(), planned, problem, reason, aiming, values, attention)

    def _reason_to_plan(self, plans: PlanState, timestep: TimeStep, active: Array) -> Array:
        """(B,) why a new plan is due where the agent is ``active`` (B,), in words; empty where none is."""
        config = self.config.planning
        if config.replan == "step" or config.always_goal:
            at_target = at_checkpoint = late = np.zeros(len(timestep.first), bool)
        else:
            following = active & plans.aiming & ~timestep.first & ~plans.explored
            at_target, at_checkpoint = self._reached(plans, timestep.observation, following)
            late = plans.steps >= config.timeout
        like = "" if config.match_observations else "a state like "  # several states can share a description
        reasons = {
            "the episode begins": timestep.first,
            "the last action was random": plans.explored,
            "there was no target": ~plans.aiming,
            f"{like}the target was reached": at_target,
            f"{like}a checkpoint was reached": at_checkpoint,
            "time ran out": late,
        }
        default = "it plans at every step" if config.replan == "step" and not config.always_goal else ""
        return np.select(list(reasons.values()), list(reasons), default=default)

    def _reached(self, plans: PlanState, observation: Array, following: Array) -> tuple[Array, Array]:
        """(B,) bool each: whether the target was reached, and whether any checkpoint of the plan was.

        ``following`` (B,) bool says where the agent follows a plan; both are False elsewhere. A checkpoint on which it
        stood when it planned is not kept by that plan, and so cannot be reached under it.
        """
        at_target, at_checkpoint = np.zeros((2, len(following)), bool)
        if not following.any():
            return at_target, at_checkpoint
        # Identify the current states, the targets and the checkpoints, by state or by partial description. The network
        # may have learned since the plan was made, so the states of the plan are described again.
        by_code = not self.config.planning.match_observations
        identify = self.frozen.describe if by_code else self.spec.state_key
        here, target = identify(np.concatenate([observation[following], plans.target[following]])).reshape(2, -1)
        kept, vertices = plans.kept[following], plans.vertices[following]
        kept[:, CURRENT] = False
        met = np.zeros(kept.shape, bool)
        if kept.any():
            met[kept] = identify(vertices[kept]) == here[kept.nonzero()[0]]
        at_target[following], at_checkpoint[following] = here == target, met.any(-1)
        # By description, the checkpoint reached last is not reached again before another one is (authors' code).
        if by_code:
            at_checkpoint[following] &= here != plans.reached_code[following]
            reached = (at_target | at_checkpoint)[following]
            plans.reached_code[following] = np.where(reached, here, plans.reached_code[following])
        return at_target, at_checkpoint

    # Plans

    def _new_targets(self, plans: PlanState, timestep: TimeStep, rows: Array) -> ProxyProblem | None:
        """Choose new targets for the environments ``rows`` (R,), by solving proxy problems if the agent plans."""
        observation = timestep.observation[rows]
        goal = self.vertex_source.goal(observation, timestep.goal[rows])
        problem = None
        if self.config.planning.always_goal or self._random_targets:
            target = self._random_target(observation, goal) if self._random_targets else goal
            aiming = np.ones(len(rows), bool)
            plans.kept[rows] = False  # no checkpoint ends the way to the target
        else:
            problem = self._solve(plans, observation, goal, rows)
            # Aim at the best vertex (Alg. 1, "select the target checkpoint").
            target, aiming = problem.targets, problem.target >= 0
            plans.record_problem(rows, problem.vertices, problem.kept, hidden_checkpoints(problem.vertices))
        plans.target[rows], plans.aiming[rows], plans.steps[rows] = target, aiming, 0
        return problem

    def _solve(self, plans: PlanState, observation: Array, goal: Array, rows: Array) -> ProxyProblem:
        """Construct and solve the proxy problems of the environments ``rows`` (R,) (Alg. 1, "subroutine")."""
        config = self.config.planning
        # Generate checkpoints (Alg. 1, "generate more than necessary checkpoints"), or keep those of the episode.
        if config.regenerate:
            plans.remaining[rows] = False  # the checkpoints of earlier plans are discarded
            vertices = self.vertex_source.propose(observation, goal, environments=rows)
        else:
            vertices = self.vertex_source.keep_or_propose(observation, goal, plans, rows)
        # Annotate edges (Alg. 1, "use estimators to annotate the edges").
        edges = self.edge_source.estimate(vertices, rows)
        # Prune vertices and edges, and run value iteration (Alg. 1, "prune", "run value iteration").
        factors = None
        if self._penalty > 0:
            factors = plans.visits.factors(rows, vertices.key, self.spec.actions, self._penalty)
        return solve(vertices, edges, config, factors)

    def _random_target(self, observation: Array, goal: Array) -> Array:
        """(R, W, H, C) random imagined states, some of them replaced by the goal."""
        checkpoint = self.vertex_source.propose(observation, goal, checkpoints=1).observation[:, 1]
        is_goal = self.rng.random(len(observation)) < GOAL_FRACTION
        return np.where(is_goal[:, None, None, None], goal, checkpoint)

    def plan(self, observation: Array, goal: Array) -> ProxyProblem:
        """Solved proxy problems for observations (B, W, H, C) in which episodes begin."""
        if self.config.planning.always_goal:
            raise ValueError("this agent always aims at the goal and does not plan")
        environments = np.arange(len(observation))
        goal = self.vertex_source.goal(observation, goal)
        vertices = self.vertex_source.propose(observation, goal, environments=environments)
        return solve(vertices, self.edge_source.estimate(vertices, environments), self.config.planning)

    def edges(self, vertices: Vertices) -> Edges:
        """All estimates for all pairs of vertices, which need not belong to one plan."""
        return self.edge_source.complete(vertices)

    # The checkpoint policy

    def action_values(self, observation: Array, target: Array) -> Array:
        """(B, A) discounted probabilities of reaching the target after each action."""
        if "policy" in self.config.planning.oracle_parts:
            return oracle_of(self.spec).action_values(observation, target)
        return self.frozen.values(observation, target)

    def follow(self, observation: Array, target: Array) -> Array:
        """(B,) greedy actions."""
        return self.action_values(observation, target).argmax(-1)


class SkipperActor(TargetActor[ProxyProblem]):
    """Skipper as it is evaluated."""

    policy: SkipperPolicy


def play_skipper(
    config: SkipperConfig,
    spec: EnvironmentSpec,
    weights: dict[str, Array],
    rng: np.random.Generator,
    *,
    explain: bool = False,
) -> SkipperActor:
    """An agent that acts with saved weights, without anything that only training needs.

    With ``explain``, decisions also hold the attention of the selector.
    """
    with seeded_initialisation(0):  # any seed: all weights are replaced
        network = SkipperNetwork(config, spec)
    load_module_state(network, weights)
    policy = evaluation_policy(network, config, spec, rng, explain=explain)
    return SkipperActor(policy, config.learning.epsilon_evaluation)


def untrained_skipper(config: SkipperConfig, spec: EnvironmentSpec, rng: np.random.Generator) -> Agent:
    """An agent with initial networks and no random actions, for variants whose decisions use ground truth."""
    with seeded_initialisation(config.seed):
        network = SkipperNetwork(config, spec)
    return SkipperActor(evaluation_policy(network, config, spec, rng), epsilon=0.0)


def evaluation_policy(
    network: SkipperNetwork,
    config: SkipperConfig,
    spec: EnvironmentSpec,
    rng: np.random.Generator,
    *,
    explain: bool = False,
) -> SkipperPolicy:
    """A policy as it is evaluated, with a network that does not learn meanwhile."""
    frozen = FrozenNetwork(network, config, spec, plans=config.planning, ensemble=config.decision.ensemble)
    return SkipperPolicy(frozen, config, spec, rng, explain=explain)
