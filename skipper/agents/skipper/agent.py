"""Skipper learns: estimators, checkpoint policy and generator from hindsight, while its policy acts (Alg. 1)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from skipper.agents.learning_core import LearningCore, explore, linear_epsilon, module_state, named_rng
from skipper.agents.skipper.config import SkipperConfig
from skipper.agents.skipper.policy import SkipperActor, SkipperPolicy, evaluation_policy
from skipper.agents.skipper.update import UpdateBatches
from skipper.agents.skipper.update_process import Updater, UpdaterProcess
from skipper.agents.skipper.vertices import Memory, PlanState, SkipperNetwork, plan_state_arrays
from skipper.types import Agent, Array, Decision, EnvironmentSpec, TimeStep, Transition, scene_of


class SkipperAgent:
    """Learns estimators, checkpoint policy and generator from hindsight, and acts by planning with them."""

    def __init__(self, config: SkipperConfig, spec: EnvironmentSpec) -> None:
        if config.replay.targets == 0:
            raise ValueError("Skipper learns from hindsight: targets must be at least 1")
        self.config, self.spec, self._scene = config, spec, scene_of(spec)
        self.core = LearningCore(config, spec, lambda: SkipperNetwork(config, spec), config.replay)
        self._memory = Memory(self.core.target_network, config.network.partial_width)
        self._policy = self._training_policy()
        self._batches = UpdateBatches(self.core, self._memory.partial, self._scene)
        self._act_rng = named_rng(config.seed, "act")
        self._updater: Updater | UpdaterProcess = Updater(config, self.core.online)
        if config.uses_updater_process:
            self._updater = UpdaterProcess(config, spec, self.core.online)

    def _training_policy(self) -> SkipperPolicy:
        settings, rng = self.config.learning, named_rng(self.config.seed, "plan")
        network = self.core.target_network if settings.act_with_target_network else self.core.network
        memory = self._memory if settings.act_with_target_network else None
        config = self.config
        if settings.training_targets == "random":  # all variants practise alike: they walk to a target until they meet it, or time runs out
            planning = replace(config.planning, regenerate="trigger", always_goal=False, oracle_parts=())
            config = replace(config, planning=planning)
        return SkipperPolicy(network, config, self.spec, rng, practice=settings.training_targets == "random", memory=memory)

    # Acting

    def act(self, timestep: TimeStep) -> Decision:
        """Plan, and explore with an epsilon that falls over time."""
        decision = self._policy.decide(timestep)
        epsilon = linear_epsilon(self.config.learning, self.core.steps)
        return decision._replace(action=explore(decision.action, epsilon, self.spec.actions, self._act_rng))

    def evaluator(self, rng: np.random.Generator) -> Agent:
        """The same networks with a memory and a random stream of their own."""
        self._updater.synchronise()
        settings = self.config.learning
        return SkipperActor(
            evaluation_policy(self.core.evaluated, self.config, self.spec, rng), settings.epsilon_evaluation
        )

    # Learning

    def observe(self, transition: Transition) -> None:
        """Remember what the last decision led to."""
        if self.core.copies_after(transition):
            self._updater.synchronise()
        self.core.observe(transition)

    def ready(self) -> bool:
        """Whether an episode has ended."""
        return len(self.core.experience.replay) > 0

    def learn(self) -> Mapping[str, float]:
        """One update of estimators and generator, on prioritized samples or on all pairs of a few episodes."""
        batch_ = self._batches.prepare()
        self.core.updates += 1
        update = self._updater.update(batch_)
        if batch_.samples:
            self.core.prioritise(batch_.samples, update.losses)
        return update.metrics

    # Saving

    def weights(self) -> dict[str, Array]:
        """The networks that are evaluated."""
        self._updater.synchronise()
        return module_state(self.core.evaluated)

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides the future."""
        self._updater.synchronise()
        walk = self._policy.walk
        return {
            "core": self.core.state_dict(),
            "memory": self._memory.state_dict(),
            "walk": plan_state_arrays(walk) if walk is not None else {},
            "rngs": {name: rng.bit_generator.state for name, rng in self._rngs().items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where the state was taken."""
        self.core.load_state_dict(state["core"])
        self._memory.load_state_dict(state["memory"])
        self._updater.restart()
        self._policy.walk = (
            PlanState(**{name: column.copy() for name, column in state["walk"].items()}) if state["walk"] else None
        )
        for name, rng in self._rngs().items():
            rng.bit_generator.state = state["rngs"][name]

    def _rngs(self) -> dict[str, np.random.Generator]:
        return {"act": self._act_rng, "imagine": self._batches.rng, "plan": self._policy.rng}
