"""Skipper: walk to the checkpoint that a proxy problem's solution names, then plan again (Sec. 3, Alg. 1)."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from skipper.agents.base import (
    LearningCore,
    explore,
    linear_epsilon,
    load_module_state,
    module_state,
    named_rng,
    observations_tensor,
)
from skipper.agents.checkpoints import (
    SkipperNetwork,
    Walk,
    imagine_vertices,
    learned_edges,
    new_walk,
    sample_codes,
    walk_state,
)
from skipper.agents.estimators import Hindsight, estimator_losses
from skipper.config import RunConfig
from skipper.losses import total_loss, weighted_mean
from skipper.nets.generator import codes_to_bits, cyclic_weight
from skipper.nets.layers import seeded_initialisation
from skipper.planning.proxy import CURRENT, GOAL, Edges, ProxyProblem, Vertices, merge_equal, solve
from skipper.types import Agent, Array, Decision, EnvironmentSpec, TimeStep, Transition, oracle_of, scene_of


class SkipperPolicy:
    """Acts for a batch of environments: plans where it is time to, and follows the checkpoint policy."""

    def __init__(
        self, network: SkipperNetwork, config: RunConfig, spec: EnvironmentSpec, rng: np.random.Generator
    ) -> None:
        self.network, self.config, self.spec, self.rng = network, config, spec, rng
        self._scene = scene_of(spec)
        self.walk: Walk | None = None

    def decide(self, timestep: TimeStep) -> Decision:
        """Targets and greedy actions; random actions where the current state has no edge."""
        B = len(timestep.observation)  # noqa: N806
        if self.walk is None or len(self.walk.steps) != B:
            self.walk = new_walk(B, self.config.planning.checkpoints + 2, self.spec.shape)
        walk = self.walk
        code = self.network.generator.codes(observations_tensor(timestep.observation)).numpy()
        due = self._time_to_plan(walk, timestep, code)
        plan = self._plan(walk, timestep, code, np.flatnonzero(due)) if due.any() else None
        walk.steps[:] += 1
        action = self._follow(timestep.observation, walk.target)
        action = np.where(walk.aiming, action, self.rng.integers(self.spec.actions, size=B))
        return Decision(action, walk.target.copy(), due, plan)

    def _time_to_plan(self, walk: Walk, timestep: TimeStep, code: Array) -> Array:
        """(B,) where a checkpoint was met, time ran out, or there is no plan yet."""
        config = self.config.planning
        if config.always_goal:
            return timestep.first | ~walk.aiming
        if config.match_states:
            seen = timestep.observation[:, None]
            at_checkpoint = (walk.kept & (walk.vertices == seen).all((2, 3, 4)))[:, 1:].any(-1)
        else:
            met = walk.kept & (walk.codes == code[:, None])
            at_checkpoint = (met[:, 1:].any(-1) & (code != walk.planned_code)) | (code == walk.target_code)
        late = walk.steps >= config.timeout
        always = config.regenerate == "step"
        return timestep.first | ~walk.aiming | at_checkpoint | late | np.full(len(code), always)

    def _plan(self, walk: Walk, timestep: TimeStep, code: Array, rows: Array) -> ProxyProblem | None:
        """New plans for the environments ``rows``, written into the walk."""
        config = self.config.planning
        observation, goal = timestep.observation[rows], timestep.goal[rows]
        if config.always_goal:
            walk.target[rows], walk.aiming[rows], walk.steps[rows] = goal, True, 0
            return None
        vertices = self._vertices(walk, observation, goal, timestep.first[rows], rows)
        problem = solve(vertices, self._edges, config)
        walk.vertices[rows], walk.codes[rows], walk.kept[rows] = vertices.observation, vertices.code, problem.kept
        walk.target[rows] = problem.targets
        walk.aiming[rows] = problem.target >= 0
        walk.target_code[rows] = vertices.code[np.arange(len(rows)), problem.target]
        walk.planned_code[rows], walk.steps[rows] = code[rows], 0
        return problem

    def _vertices(self, walk: Walk, observation: Array, goal: Array, first: Array, rows: Array) -> Vertices:
        """Imagined anew, or for "once" those of the episode with the current state put in."""
        generator = self.network.generator
        # Drawn for all, so that the stream does not depend on who needs them.
        sampled = sample_codes(len(rows), self.config, self.rng)
        fresh = imagine_vertices(generator, self._scene, observation, goal, sampled)
        if self.config.planning.regenerate != "once" or first.all():
            return fresh
        states = np.where(_like(first, fresh.observation), fresh.observation, walk.vertices[rows])
        codes = np.where(first[:, None], fresh.code, walk.codes[rows])
        states[:, CURRENT], codes[:, CURRENT] = observation, fresh.code[:, CURRENT]
        # What an earlier plan of the episode pruned stays pruned.
        stays = np.where(first[:, None], fresh.present, walk.kept[rows])
        stays[:, [CURRENT, GOAL]] = True
        return Vertices(states, codes, merge_equal(states) & stays)

    def _edges(self, vertices: Vertices) -> Edges:
        if self.config.planning.oracle_plan:
            truth = oracle_of(self.spec).edges(vertices.observation, self.config.learning.task_discount)
            return Edges(*truth)
        return learned_edges(self.network.estimators, vertices, self.config.learning.task_discount)

    @torch.no_grad()
    def _follow(self, observation: Array, target: Array) -> Array:
        """(B,) greedy actions of the checkpoint policy."""
        if self.config.planning.oracle_policy:
            return oracle_of(self.spec).action_values(observation, target).argmax(-1)
        both = torch.cat([observations_tensor(observation), observations_tensor(target)])
        source, aim = self.network.estimators.partial(both).chunk(2)
        head = self.network.estimators.value
        return head.expectation(head(source, aim)).argmax(-1).numpy()


class SkipperActor:
    """A policy as it is evaluated: nearly greedy, with its own memory and random stream."""

    def __init__(self, policy: SkipperPolicy, epsilon: float) -> None:
        self._policy, self._epsilon = policy, epsilon

    def act(self, timestep: TimeStep) -> Decision:
        """The plan's action but for ``epsilon`` of them."""
        decision = self._policy.decide(timestep)
        action = explore(decision.action, self._epsilon, self._policy.spec.actions, self._policy.rng)
        return decision._replace(action=action)


class SkipperAgent:
    """Learns estimators, checkpoint policy and generator from hindsight, and acts by planning with them."""

    def __init__(self, config: RunConfig, spec: EnvironmentSpec) -> None:
        self.config, self.spec, self._scene = config, spec, scene_of(spec)
        self.core = LearningCore(config, spec, lambda: SkipperNetwork(config, spec), config.replay)
        self._policy = SkipperPolicy(self.core.network, config, spec, named_rng(config.seed, "plan"))
        self._act_rng, self._imagine_rng = named_rng(config.seed, "act"), named_rng(config.seed, "imagine")

    # Acting

    def act(self, timestep: TimeStep) -> Decision:
        """Plan, and explore with an epsilon that falls over time."""
        decision = self._policy.decide(timestep)
        epsilon = linear_epsilon(self.config.learning, self.core.steps)
        return decision._replace(action=explore(decision.action, epsilon, self.spec.actions, self._act_rng))

    def evaluator(self, rng: np.random.Generator) -> Agent:
        """The same networks with a memory and a random stream of their own."""
        policy = SkipperPolicy(self.core.network, self.config, self.spec, rng)
        return SkipperActor(policy, self.config.learning.epsilon_evaluation)

    # Learning

    def observe(self, transition: Transition) -> None:
        """Remember what the last decision led to."""
        self.core.observe(transition)

    def ready(self) -> bool:
        """Whether an episode has ended."""
        return len(self.core.experience.replay) > 0

    def learn(self) -> dict[str, float]:
        """One update of estimators and generator on a batch of prioritized hindsight samples."""
        core, settings = self.core, self.config.learning
        samples = core.sample()
        batch = Hindsight.of(samples)
        losses = estimator_losses(core.network.estimators, core.target_network.estimators, batch, settings)
        generated = self._generator_losses(batch)
        per_sample = total_loss(losses, dict.fromkeys(losses, 1.0))
        priorities = per_sample
        if settings.delusion_scale > 0:
            losses["delusion"] = self._delusion_losses(batch)
            per_sample = per_sample + settings.delusion_scale * losses["delusion"]
        # The generator's losses are not weighted by priority (App., "Checkpoint Generator").
        loss = weighted_mean(per_sample, torch.from_numpy(samples.weight)) + sum(generated.values())
        value = core.update(loss, samples, priorities)
        metrics = {name: float(part.detach().mean()) for name, part in (losses | generated).items()}
        return {"loss": value, **metrics}

    def _generator_losses(self, batch: Hindsight) -> dict[str, Tensor]:
        """Reconstruct the agent's cell in the context of the hindsight target, a state of the same episode."""
        cell = torch.from_numpy(self._scene.agent_cell(batch.observation.numpy()))
        losses = self.core.network.generator.losses(batch.observation, batch.target, cell)
        settings = self.config.generator
        weight = settings.entropy_scale * cyclic_weight(self.core.updates, settings.entropy_period)
        return {"reconstruction": losses["reconstruction"].mean(), "entropy": weight * losses["entropy"].mean()}

    def _delusion_losses(self, batch: Hindsight) -> Tensor:
        """(B,) distance losses towards imagined states, which may not exist (App., "Delusion Suppression")."""
        generator, core = self.core.network.generator, self.core
        B = len(batch.action)  # noqa: N806
        codes = torch.from_numpy(self._imagine_rng.integers(2**self.config.generator.description_bits, size=B))
        with torch.no_grad():
            logits = generator.fuse(generator.context(batch.observation), codes_to_bits(codes, generator.bits))
        # Sampling from a softmax: the largest of logits with Gumbel noise.
        cell = (logits.numpy() + self._imagine_rng.gumbel(size=logits.shape)).argmax(-1)
        imagined = self._scene.place_agent(batch.observation.numpy(), cell[:, None])[:, 0]
        towards = batch._replace(target=observations_tensor(imagined))
        everything = estimator_losses(
            core.network.estimators, core.target_network.estimators, towards, self.config.learning
        )
        return everything["distance"]

    # Saving

    def weights(self) -> dict[str, Array]:
        """The online networks."""
        return module_state(self.core.network)

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides the future."""
        walk = self._policy.walk
        return {
            "core": self.core.state_dict(),
            "walk": walk_state(walk) if walk is not None else {},
            "rngs": {name: rng.bit_generator.state for name, rng in self._rngs().items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where the state was taken."""
        self.core.load_state_dict(state["core"])
        self._policy.walk = (
            Walk(**{name: column.copy() for name, column in state["walk"].items()}) if state["walk"] else None
        )
        for name, rng in self._rngs().items():
            rng.bit_generator.state = state["rngs"][name]

    def _rngs(self) -> dict[str, np.random.Generator]:
        return {"act": self._act_rng, "imagine": self._imagine_rng, "plan": self._policy.rng}


def play_skipper(
    config: RunConfig, spec: EnvironmentSpec, weights: dict[str, Array], rng: np.random.Generator
) -> Agent:
    """An agent that acts with saved weights and holds nothing that only training needs."""
    with seeded_initialisation(0):  # whatever they are, they are overwritten
        network = SkipperNetwork(config, spec)
    load_module_state(network, weights)
    return SkipperActor(SkipperPolicy(network, config, spec, rng), config.learning.epsilon_evaluation)


def untrained_skipper(config: RunConfig, spec: EnvironmentSpec, rng: np.random.Generator) -> Agent:
    """An agent with the networks that ``config``'s seed begins with: for variants that ask the truth instead.

    It takes no random actions, so that nothing but the truth is tested.
    """
    with seeded_initialisation(config.seed):
        network = SkipperNetwork(config, spec)
    return SkipperActor(SkipperPolicy(network, config, spec, rng), epsilon=0.0)


def _like(flags: Array, states: Array) -> Array:
    """(B,) as (B, 1, ...) to broadcast with states (B, ...)."""
    return flags.reshape(-1, *(1 for _ in states.shape[1:]))
