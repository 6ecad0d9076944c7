"""Skipper's decisions: plan over checkpoints, then follow the checkpoint policy to the target (Sec. 3, Alg. 1)."""

import numpy as np

from skipper.agents.exploration import explore
from skipper.agents.learning_core import load_module_state
from skipper.agents.skipper.config import SkipperConfig
from skipper.agents.skipper.edges import EdgeSource
from skipper.agents.skipper.plan_state import PlanState
from skipper.agents.skipper.vertices import VertexSource
from skipper.nets.estimators import SkipperNetwork
from skipper.nets.frozen import FrozenNetwork
from skipper.nets.layers import seeded_initialisation
from skipper.planning.proxy import ProxyProblem, solve
from skipper.types import Agent, Array, Decision, Edges, EnvironmentSpec, TimeStep, Vertices, oracle_of

GOAL_FRACTION = 0.25  # of random targets that are the goal


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
        self._attend = frozen.network.estimators.partial.attend if explain else None
        self.plan_state: PlanState | None = None

    # Decisions

    def decide(self, timestep: TimeStep) -> Decision:
        """Targets and greedy actions; random actions where the current state has no edge."""
        B, config = len(timestep.observation), self.config.planning  # noqa: N806
        if self.plan_state is None or len(self.plan_state.steps) != B:
            self.plan_state = PlanState.empty(B, config.checkpoints + 2, self.spec.shape, self.spec.longest)
        plans = self.plan_state
        plans.begin_episodes(timestep.first)
        # Is it time to plan (Alg. 1, "if abstract problem just constructed or a checkpoint / timeout reached")?
        code = self._describe(timestep.observation)
        active = np.ones(B, bool) if timestep.idle is None else ~timestep.idle
        reason = np.where(active, self._reason_to_plan(plans, timestep, code), "")
        planned = reason != ""
        # Construct and solve proxy problems, and take over their targets (Alg. 1, "subroutine", "value iteration").
        problem = self._new_targets(plans, timestep, code, np.flatnonzero(planned)) if planned.any() else None
        plans.steps[:] += 1
        # Follow the checkpoint policy (Alg. 1, "follow the action suggested by the checkpoint-achieving policy").
        action, values = self.rng.integers(self.spec.actions, size=B), np.full((B, self.spec.actions), np.nan)
        aiming = active & plans.aiming
        if aiming.any():
            values[aiming] = self.action_values(timestep.observation[aiming], plans.target[aiming])
            action[aiming] = values[aiming].argmax(-1)
        if config.revisit_penalty > 0 and not self._random_targets:
            plans.record_action(self.spec.state_key(timestep.observation), action)
        attention = self._attend(timestep.observation) if self._attend else None
        return Decision(action, plans.target.copy(), planned, problem, reason, aiming, values, attention)

    def _describe(self, observation: Array) -> Array:
        """(B,) partial descriptions, -1 where no decision depends on them."""
        if self.config.planning.match_observations or self.config.planning.always_goal:
            return np.full(len(observation), -1)
        return self.frozen.describe(observation)

    def _reason_to_plan(self, plans: PlanState, timestep: TimeStep, code: Array) -> Array:
        """(B,) why a new plan is due, in words; empty where none is."""
        config = self.config.planning
        if config.regenerate == "step" or config.always_goal:
            at_target = at_checkpoint = late = np.zeros(len(code), bool)
        else:
            at_target, at_checkpoint = self._reached(plans, timestep.observation, code)
            late = plans.steps >= config.timeout
        like = "" if config.match_observations else "a state like "  # several states can share a description
        reasons = {
            "the episode begins": timestep.first,
            "there was no target": ~plans.aiming,
            f"{like}the target was reached": at_target,
            f"{like}a checkpoint was reached": at_checkpoint,
            "time ran out": late,
        }
        default = "it plans at every step" if config.regenerate == "step" and not config.always_goal else ""
        return np.select(list(reasons.values()), list(reasons), default=default)

    def _reached(self, plans: PlanState, observation: Array, code: Array) -> tuple[Array, Array]:
        """(B,) bool each: whether the target was reached, and whether any checkpoint of the plan was."""
        if self.config.planning.match_observations:
            key, reached = self.spec.state_key(observation), np.zeros(len(observation), bool)
            if plans.kept.any():
                reached = (plans.kept & (self.spec.state_key(plans.vertices) == key[:, None]))[:, 1:].any(-1)
            return self.spec.state_key(plans.target) == key, reached
        reached = (plans.kept & (plans.codes == code[:, None]))[:, 1:].any(-1)
        return code == plans.target_code, reached & (code != plans.planned_code)

    # Plans

    def _new_targets(self, plans: PlanState, timestep: TimeStep, code: Array, rows: Array) -> ProxyProblem | None:
        """Choose new targets for the environments ``rows`` (R,), by solving proxy problems if the agent plans."""
        observation = timestep.observation[rows]
        goal = self.vertex_source.goal(observation, timestep.goal[rows])
        problem = None
        if self.config.planning.always_goal or self._random_targets:
            target = self._random_target(observation, goal) if self._random_targets else goal
            target_code, aiming = self._describe(target), np.ones(len(rows), bool)
            plans.kept[rows] = False  # no checkpoint ends the way to the target
        else:
            problem = self._solve(plans, observation, goal, timestep.first[rows], rows)
            # Aim at the best vertex (Alg. 1, "select the target checkpoint").
            vertices, target, aiming = problem.vertices, problem.targets, problem.target >= 0
            target_code = vertices.code[np.arange(len(rows)), problem.target]
            plans.vertices[rows], plans.codes[rows], plans.kept[rows] = (
                vertices.observation,
                vertices.code,
                problem.kept,
            )
        plans.target[rows], plans.target_code[rows] = target, target_code
        plans.planned_code[rows], plans.aiming[rows], plans.steps[rows] = code[rows], aiming, 0
        return problem

    def _solve(self, plans: PlanState, observation: Array, goal: Array, first: Array, rows: Array) -> ProxyProblem:
        """Construct and solve the proxy problems of the environments ``rows`` (R,) (Alg. 1, "subroutine")."""
        config = self.config.planning
        # Generate checkpoints (Alg. 1, "generate more than necessary checkpoints"). Skipper-once keeps those of the
        # episode, but generates them too, so that the random stream is the same whichever environments need new ones.
        vertices = self.vertex_source.propose(observation, goal, environments=rows)
        if config.regenerate == "once" and not first.all():
            vertices = self.vertex_source.keep_checkpoints(vertices, plans, rows, first)
        # Annotate edges (Alg. 1, "use estimators to annotate the edges").
        edges = self.edge_source.estimate(vertices, rows)
        # Prune vertices and edges, and run value iteration (Alg. 1, "prune", "run value iteration").
        visits = plans.visit_counts(rows, vertices.key, self.spec.actions) if config.revisit_penalty > 0 else None
        return solve(vertices, edges, config, visits)

    def _random_target(self, observation: Array, goal: Array) -> Array:
        """(R, W, H, C) random imagined states, some of them replaced by the goal."""
        checkpoint = self.vertex_source.propose(observation, goal, checkpoints=1).observation[:, 1]
        is_goal = self.rng.random(len(observation)) < GOAL_FRACTION
        return np.where(is_goal[:, None, None, None], goal, checkpoint)

    def plan(self, observation: Array, goal: Array) -> ProxyProblem:
        """Solved proxy problems for observations (B, W, H, C) in which episodes begin."""
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


class SkipperActor:
    """A policy as it is evaluated: nearly greedy, with its own random stream."""

    def __init__(self, policy: SkipperPolicy, epsilon: float) -> None:
        self.policy, self._epsilon = policy, epsilon

    def act(self, timestep: TimeStep) -> Decision:
        """The policy's action, replaced by a random one with probability ``epsilon``."""
        decision = self.policy.decide(timestep)
        action = explore(decision.action, self._epsilon, self.policy.spec.actions, self.policy.rng)
        return decision._replace(action=action)

    def plan(self, observation: Array, goal: Array) -> ProxyProblem:
        """The proxy problems that the agent would solve at the beginning of an episode; its state is unchanged."""
        if self.policy.config.planning.always_goal:
            raise ValueError("this agent always aims at the goal and does not plan")
        state = self.policy.rng.bit_generator.state
        try:
            return self.policy.plan(observation, goal)
        finally:
            self.policy.rng.bit_generator.state = state


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
    frozen = FrozenNetwork(network, config, spec, edge_cache=True, ensemble=config.decision.ensemble)
    return SkipperPolicy(frozen, config, spec, rng, explain=explain)
