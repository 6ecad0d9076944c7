"""The Skipper agent: acts by planning over imagined checkpoints and learns from hindsight (Alg. 1)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from skipper.agents.exploration import linear_epsilon
from skipper.agents.learning_core import LearningCore, module_state, named_rng
from skipper.agents.skipper.config import SkipperConfig
from skipper.agents.skipper.plan_state import PlanState
from skipper.agents.skipper.policy import SkipperActor, SkipperPolicy, evaluation_policy
from skipper.agents.skipper.update import SkipperUpdater, UpdateBatches
from skipper.agents.update_process import UpdaterProcess
from skipper.config import DecisionConfig
from skipper.nets.estimators import SkipperNetwork
from skipper.nets.frozen import FrozenNetwork
from skipper.types import Agent, Array, Decision, EnvironmentSpec, TimeStep, Transition


class SkipperAgent:
    """Learns estimators, checkpoint policy and generator from hindsight, and acts by planning with them."""

    def __init__(self, config: SkipperConfig, spec: EnvironmentSpec) -> None:
        self.config, self.spec = config, spec
        self.core = LearningCore(config, spec, lambda: SkipperNetwork(config, spec))
        self._frozen = FrozenNetwork(self.core.target_network, config, spec)
        self._policy = self._training_policy()
        self._batches = UpdateBatches(self.core, config, spec, self._frozen)
        self._act_rng = named_rng(config.seed, "act")
        updater = SkipperUpdater(config, self.core.online)
        self._updater = UpdaterProcess(updater, spec) if config.uses_updater_process else updater

    def _training_policy(self) -> SkipperPolicy:
        settings, rng = self.config.learning, named_rng(self.config.seed, "plan")
        config, frozen = replace(self.config, decision=DecisionConfig()), self._frozen  # aids are for evaluation
        if not settings.act_with_target_network:  # the online network learns between decisions
            frozen = FrozenNetwork(self.core.network, config, self.spec, caching=False)
        random_targets = settings.training_targets == "random"
        if random_targets:  # all variants train alike: they follow a target until it is reached or times out
            planning = replace(
                config.planning, replan="trigger", replan_after_exploring=False, always_goal=False, oracle_parts=()
            )
            config = replace(config, planning=planning)
        return SkipperPolicy(frozen, config, self.spec, rng, random_targets=random_targets)

    # Acting

    def act(self, timestep: TimeStep) -> Decision:
        """Plan, and explore with an epsilon that decreases over time (Alg. 1); or always act at random."""
        if self.config.learning.training_targets == "none":
            return Decision(self._act_rng.integers(self.spec.actions, size=len(timestep.first)))
        return self._policy.act(timestep, linear_epsilon(self.config.learning, self.core.steps), self._act_rng)

    def evaluator(self, rng: np.random.Generator) -> Agent:
        """The evaluated networks, with caches and a random stream of their own."""
        self._updater.synchronise()
        policy = evaluation_policy(self.core.evaluated, self.config, self.spec, rng)
        return SkipperActor(policy, self.config.learning.epsilon_evaluation)

    # Learning

    def observe(self, transition: Transition) -> None:
        """Store what the last decision led to; a target update waits for pending updates."""
        if self.core.target_update_after(transition):
            self._updater.synchronise()
        self.core.observe(transition)

    def ready(self) -> bool:
        """Whether there is anything to learn from."""
        return self._batches.draw.sampler.ready()

    def learn(self) -> Mapping[str, float]:
        """One update of estimators and generator (Alg. 1, "time to train")."""
        # Sample hindsight transitions, and prepare imagined and bootstrap targets.
        batch = self._batches.prepare()
        self.core.updates += 1
        # Losses and a gradient step, in this process or in another one.
        result = self._updater.update(batch)
        # The losses are the new priorities.
        self._batches.draw.update_priorities(batch.leaf, result.losses)
        return result.metrics

    # Saving

    def weights(self) -> dict[str, Array]:
        """The networks that are evaluated."""
        self._updater.synchronise()
        return module_state(self.core.evaluated)

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides the future."""
        self._updater.synchronise()
        plans = self._policy.plan_state
        return {
            "core": self.core.state_dict(),
            "sampler": self._batches.draw.sampler.state_dict(),
            "frozen": self._frozen.state_dict(),
            "plan_state": plans.state_dict() if plans is not None else {},
            "rngs": {name: rng.bit_generator.state for name, rng in self._rngs().items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where the state was taken."""
        self.core.load_state_dict(state["core"])
        self._batches.draw.sampler.load_state_dict(state["sampler"])
        self._frozen.load_state_dict(state["frozen"])
        self._updater.restart()
        self._policy.plan_state = PlanState.from_state(state["plan_state"]) if state["plan_state"] else None
        for name, rng in self._rngs().items():
            rng.bit_generator.state = state["rngs"][name]

    def _rngs(self) -> dict[str, np.random.Generator]:
        return {"act": self._act_rng, "imagine": self._batches.draw.rng, "plan": self._policy.rng}
