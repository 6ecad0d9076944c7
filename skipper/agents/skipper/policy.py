"""Skipper acts: walk to the checkpoint that a proxy problem's solution names, then plan again (Sec. 3, Alg. 1)."""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from skipper.agents.learning_core import explore, load_module_state, observations_tensor
from skipper.agents.skipper.config import SkipperConfig
from skipper.agents.skipper.vertices import (
    Memory,
    PlanState,
    SkipperNetwork,
    describe_states,
    imagined_cells,
    imagined_vertices,
    new_plan_state,
    true_vertices,
)
from skipper.nets.compiled.imagination import Imagination
from skipper.nets.edge_cache import EdgeCache
from skipper.nets.ensemble import SymmetryEnsemble
from skipper.nets.estimates import Estimates, learned_edges
from skipper.nets.generator import distinct_codes
from skipper.nets.layers import seeded_initialisation
from skipper.planning.proxy import (
    CURRENT,
    GOAL,
    Edges,
    LazyEdges,
    ProxyProblem,
    Vertices,
    identities,
    merged_vertices,
    solve,
)
from skipper.types import Agent, Array, Decision, EnvironmentSpec, TimeStep, oracle_of, scene_of

GOALS_IN_PRACTICE = 0.25


class SkipperPolicy:
    """Acts for a batch of environments: plans where it is time to, and follows the checkpoint policy."""

    def __init__(
        self,
        network: SkipperNetwork,
        config: SkipperConfig,
        spec: EnvironmentSpec,
        rng: np.random.Generator,
        *,
        practice: bool = False,
        memory: Memory | None = None,
        edge_cache: bool = False,
        explain: bool = False,
    ) -> None:
        """``practice`` walks to random checkpoints; ``memory`` and ``edge_cache`` are for networks that stand still.

        Asked to ``explain``, decisions also say what was looked at.
        """
        self.network, self.config, self.spec, self.rng = network, config, spec, rng
        self._practice, self._scene = practice, scene_of(spec)
        self._known: Callable[[Array], Array] = (
            memory.describe if memory else partial(describe_states, network.generator)
        )
        remembered, ensemble_size = (memory.partial, memory.ensemble_size) if memory else (None, 1)
        ensemble = SymmetryEnsemble(spec.symmetries, ensemble_size)
        self._estimates = Estimates(network.estimators, config.learning.task_discount, remembered, ensemble)
        # It asks nothing of states that the learned head calls terminal.
        wanted = edge_cache and not {"edges", "terminal"} & set(config.planning.oracle_parts)
        # Edges into the current state go in any case; before that, clustering asks for them.
        back = config.planning.prune_vertices
        self._edge_cache = EdgeCache(self._estimates, self._scene, back=back) if wanted else None
        # All codes of a scene are imagined when it is new, which pays where it is soon asked for many of them again.
        often = config.planning.regenerate != "once" and config.planning.checkpoints * 4 >= 2**network.generator.bits
        self._imagination = Imagination(network.generator) if wanted and often else None
        self._attend = network.estimators.partial.attend if explain else None
        self.walk: PlanState | None = None

    def decide(self, timestep: TimeStep) -> Decision:
        """Targets and greedy actions; random actions where the current state has no edge."""
        B = len(timestep.observation)  # noqa: N806
        if self.walk is None or len(self.walk.steps) != B:
            self.walk = new_plan_state(B, self.config.planning.checkpoints + 2, self.spec.shape, self.spec.longest)
        walk = self.walk
        walk.begin(timestep.first)
        code = self._codes(timestep.observation)
        awake = np.ones(B, bool) if timestep.idle is None else ~timestep.idle
        reason = np.where(awake, self._reason_to_plan(walk, timestep, code), "")
        due = reason != ""
        plan = self._plan(walk, timestep, code, np.flatnonzero(due)) if due.any() else None
        walk.steps[:] += 1
        action, values = self.rng.integers(self.spec.actions, size=B), np.full((B, self.spec.actions), np.nan)
        led = awake & walk.aiming
        if led.any():
            values[led] = self.expect(timestep.observation[led], walk.target[led])
            action[led] = values[led].argmax(-1)
        if self.config.planning.revisit_penalty > 0 and not self._practice:
            walk.note(identities(timestep.observation), action)
        attention = self._attend(timestep.observation) if self._attend else None
        return Decision(action, walk.target.copy(), due, plan, reason, led, values, attention)

    def _codes(self, observation: Array) -> Array:
        """(B,) partial descriptions; where states are compared whole nobody asks for them."""
        if self.config.planning.match_observations or self.config.planning.always_goal:
            return np.full(len(observation), -1)
        return self.describe(observation)

    def _reason_to_plan(self, walk: PlanState, timestep: TimeStep, code: Array) -> Array:
        """(B,) why it is time to plan, in words: a checkpoint was met, say, or time ran out. Empty where it is not."""
        config = self.config.planning
        nowhere = np.zeros(len(code), bool)
        if config.regenerate == "step" or config.always_goal:
            at_target = at_checkpoint = late = nowhere
        else:
            at_target, at_checkpoint = self._met(walk, timestep.observation, code)
            late = walk.steps >= config.timeout
        like = (
            "" if config.match_observations else "a state like "
        )  # descriptions are compared, which some states share
        reasons = {
            "the episode begins": timestep.first,
            "there was no target": ~walk.aiming,
            f"{like}the target was reached": at_target,
            f"{like}a checkpoint was reached": at_checkpoint,
            "time ran out": late,
        }
        always = "it plans at every step" if config.regenerate == "step" and not config.always_goal else ""
        return np.select(list(reasons.values()), list(reasons), default=always)

    def _met(self, walk: PlanState, observation: Array, code: Array) -> tuple[Array, Array]:
        """(B,) bool each: whether the target was met, and whether any checkpoint of the plan was."""
        if self.config.planning.match_observations:
            met = (walk.kept & (walk.vertices == observation[:, None]).all((2, 3, 4)))[:, 1:].any(-1)
            return (walk.target == observation).all((1, 2, 3)), met
        met = (walk.kept & (walk.codes == code[:, None]))[:, 1:].any(-1)
        return code == walk.target_code, met & (code != walk.planned_code)

    def plan(self, observation: Array, goal: Array) -> ProxyProblem:
        """Imagine, annotate and solve a new problem for each observation (B, W, H, C), as if an episode began."""
        self.open_edge_cache(np.arange(len(observation)), observation)
        return solve(self.imagine(observation, self._goal(observation, goal)), self.estimate, self.config.planning)

    def open_edge_cache(self, rows: Array, observation: Array) -> None:
        """Before edges are estimated: say in which environments, and what these look like."""
        if self._edge_cache:
            self._edge_cache.open(rows, observation)

    def _plan(self, walk: PlanState, timestep: TimeStep, code: Array, rows: Array) -> ProxyProblem | None:
        """New plans for the environments ``rows``, written into the walk."""
        config = self.config.planning
        observation = timestep.observation[rows]
        goal = self._goal(observation, timestep.goal[rows])
        if config.always_goal or self._practice:
            walk.target[rows] = self._exercise(observation, goal) if self._practice else goal
            walk.target_code[rows], walk.planned_code[rows] = self._codes(walk.target[rows]), code[rows]
            walk.aiming[rows], walk.steps[rows] = True, 0
            walk.kept[rows] = False  # nothing on the way counts as a checkpoint
            return None
        self.open_edge_cache(rows, observation)
        vertices = self._vertices(walk, observation, goal, timestep.first[rows], rows)
        tried = walk.tried(rows, vertices.identity, self.spec.actions) if config.revisit_penalty > 0 else None
        problem = solve(vertices, self.estimate, config, tried)
        walk.vertices[rows], walk.codes[rows], walk.kept[rows] = vertices.observation, vertices.code, problem.kept
        walk.target[rows] = problem.targets
        walk.aiming[rows] = problem.target >= 0
        walk.target_code[rows] = vertices.code[np.arange(len(rows)), problem.target]
        walk.planned_code[rows], walk.steps[rows] = code[rows], 0
        return problem

    def _exercise(self, observation: Array, goal: Array) -> Array:
        """(B, W, H, C) random imagined states, with some goals among them."""
        vertices = self.imagine(observation, goal, checkpoints=1).observation
        to_goal = self.rng.random(len(observation)) < GOALS_IN_PRACTICE
        return np.where(_like(to_goal, observation), goal, vertices[:, 1])

    @torch.no_grad()
    def _goal(self, observation: Array, given: Array) -> Array:
        """(B, W, H, C) the goal as it was given, or the state in which the network expects a reward."""
        if self.network.goal is None:
            return given
        cell = self.network.goal(observations_tensor(observation)).argmax(-1).numpy()
        return self._scene.place_agent(observation, cell[:, None])[:, 0]

    def describe(self, states: Array) -> Array:
        """(B,) partial descriptions of states (B, W, H, C)."""
        return self._known(states)

    def imagine(
        self, observation: Array, goal: Array, *, checkpoints: int | None = None, rows: Array | None = None
    ) -> Vertices:
        """New vertices, imagined by the generator or true; as many ``checkpoints`` as configured, or else.

        ``rows`` (B,) says in which environments; these are numbered where it is left out.
        """
        config, ends = self.config.planning, (observation, goal)
        count = config.checkpoints if checkpoints is None else checkpoints
        if "vertices" in config.oracle_parts:
            reachable = oracle_of(self.spec).reachable(observation)
            return true_vertices(self.network.generator, self._scene, ends, reachable, self.rng, count)
        codes = distinct_codes(len(observation), count, self.config.generator.description_bits, self.rng)
        cells = self.imagined_cells(np.arange(len(observation)) if rows is None else rows, observation, codes)
        return imagined_vertices(self._scene, ends, cells, codes, None if config.match_observations else self.describe)

    def imagined_cells(self, rows: Array, observation: Array, codes: Array) -> Array:
        """(B, N) where the agent is in the states that ``codes`` (B, N) describe, in the environments ``rows`` (B,)."""
        if self._imagination is None or not self._remembers:
            return imagined_cells(self.network.generator, observation, codes)
        return self._imagination.cells(rows, observations_tensor(observation), codes)

    def _vertices(self, walk: PlanState, observation: Array, goal: Array, first: Array, rows: Array) -> Vertices:
        """Imagined anew, or for "once" those of the episode with the current state put in."""
        # Imagined for all, so that the random stream does not depend on who needs them.
        fresh = self.imagine(observation, goal, rows=rows)
        if self.config.planning.regenerate != "once" or first.all():
            return fresh
        states = np.where(_like(first, fresh.observation), fresh.observation, walk.vertices[rows])
        codes = np.where(first[:, None], fresh.code, walk.codes[rows])
        states[:, CURRENT], codes[:, CURRENT] = observation, fresh.code[:, CURRENT]
        # What an earlier plan of the episode pruned stays pruned.
        stays = np.where(first[:, None], fresh.present, walk.kept[rows])
        stays[:, [CURRENT, GOAL]] = True
        merged = merged_vertices(states, codes)
        return merged._replace(present=merged.present & stays)

    def edges(self, vertices: Vertices) -> Edges:
        """All that is known of all pairs of vertices, whatever states these are."""
        estimated = self._with_truth(vertices, self._learned)
        return estimated if isinstance(estimated, Edges) else estimated.where(_all_pairs(vertices))

    def estimate(self, vertices: Vertices) -> Edges | LazyEdges:
        """What plans are made with: as ``edges``, but rewards only where they are needed, and the rest may be known."""
        return self._with_truth(
            vertices, self._edge_cache.edges if self._edge_cache and self._remembers else self._learned
        )

    @property
    def _remembers(self) -> bool:
        """Whether there is an edge_cache, and room in it for all environments."""
        return self._edge_cache is not None and self._edge_cache.is_open

    def _learned(self, vertices: Vertices) -> LazyEdges:
        return learned_edges(self._estimates, vertices)

    def _with_truth(self, vertices: Vertices, estimate: Callable[[Vertices], LazyEdges]) -> Edges | LazyEdges:
        """The truth in place of what the configuration wants to be true."""
        truth = self.config.planning.oracle_parts
        if not {"edges", "rewards", "terminal"} & set(truth):
            return estimate(vertices)
        true = Edges(*oracle_of(self.spec).edges(vertices.observation, self.config.learning.task_discount))
        if "edges" in truth:
            # Doubt asks with which action a way begins: with that of the policy, as long as that is learned.
            doubted = self.config.planning.revisit_penalty > 0 and "policy" not in truth
            return true._replace(action=estimate(vertices).action) if doubted else true
        edges = estimate(vertices).where(_all_pairs(vertices))
        return edges._replace(
            reward=true.reward if "rewards" in truth else edges.reward,
            terminal=true.terminal if "terminal" in truth else edges.terminal,
        )

    def follow(self, observation: Array, target: Array) -> Array:
        """(B,) greedy actions of the checkpoint policy."""
        return self.expect(observation, target).argmax(-1)

    def expect(self, observation: Array, target: Array) -> Array:
        """(B, A) what the checkpoint policy expects of its actions: the discounted chance to meet the target."""
        if "policy" in self.config.planning.oracle_parts:
            return oracle_of(self.spec).action_values(observation, target)
        ends, _ = self._estimates.meet(np.concatenate([observation, target]))
        rows = np.arange(len(observation))
        return self._estimates.heads.values(ends, rows, len(rows) + rows)


class SkipperActor:
    """A policy as it is evaluated: nearly greedy, with its own memory and random stream."""

    def __init__(self, policy: SkipperPolicy, epsilon: float) -> None:
        self.policy, self._epsilon = policy, epsilon

    def act(self, timestep: TimeStep) -> Decision:
        """The plan's action but for ``epsilon`` of them."""
        decision = self.policy.decide(timestep)
        action = explore(decision.action, self._epsilon, self.policy.spec.actions, self.policy.rng)
        return decision._replace(action=action)

    def plan(self, observation: Array, goal: Array) -> ProxyProblem:
        """The proxy problems that the agent would plan with at the beginning of an episode, without acting on them."""
        if self.policy.config.planning.always_goal:
            raise ValueError("this agent always aims at the goal and does not plan")
        state = self.policy.rng.bit_generator.state
        try:
            return self.policy.plan(observation, goal)
        finally:
            self.policy.rng.bit_generator.state = state  # nobody notices


def play_skipper(
    config: SkipperConfig,
    spec: EnvironmentSpec,
    weights: dict[str, Array],
    rng: np.random.Generator,
    *,
    explain: bool = False,
    ensemble: int = 1,
) -> SkipperActor:
    """An agent that acts with saved weights and holds nothing that only training needs.

    Asked to ``explain``, it also says what it looks at. So many ``ensemble`` symmetric images count.
    """
    with seeded_initialisation(0):  # whatever they are, they are overwritten
        network = SkipperNetwork(config, spec)
    load_module_state(network, weights)
    policy = evaluation_policy(network, config, spec, rng, explain=explain, ensemble_size=ensemble)
    return SkipperActor(policy, config.learning.epsilon_evaluation)


def untrained_skipper(config: SkipperConfig, spec: EnvironmentSpec, rng: np.random.Generator) -> Agent:
    """An agent with the networks that ``config``'s seed begins with: for variants that ask the truth instead.

    It takes no random actions, so that nothing but the truth is tested.
    """
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
    ensemble_size: int = 1,
) -> SkipperPolicy:
    """A policy as it is evaluated, with networks that do not learn meanwhile."""
    memory = Memory(network, config.network.partial_width, ensemble_size)
    return SkipperPolicy(network, config, spec, rng, memory=memory, edge_cache=True, explain=explain)


def _all_pairs(vertices: Vertices) -> Array:
    """(B, N, N) bool, pairs of vertices that are not merged with others."""
    both: Array = vertices.present[:, :, None] & vertices.present[:, None]
    return both


def _like(flags: Array, states: Array) -> Array:
    """(B,) as (B, 1, ...) to broadcast with states (B, ...)."""
    return flags.reshape(-1, *(1 for _ in states.shape[1:]))
