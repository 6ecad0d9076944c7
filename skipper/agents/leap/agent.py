"""The LEAP agent: a generator, then distances, learned from random walks; plans only when it is evaluated."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from skipper.agents.exploration import linear_epsilon
from skipper.agents.leap.chain_state import ChainState
from skipper.agents.leap.config import LeapConfig
from skipper.agents.leap.policy import RandomTargetPolicy, evaluation_actor
from skipper.agents.leap.update import LeapBatches, LeapUpdater
from skipper.agents.learning_core import LearningCore, named_rng
from skipper.agents.target_learner import TargetLearner
from skipper.agents.update_process import UpdaterProcess
from skipper.config import DecisionConfig
from skipper.nets.estimators import LeapNetwork
from skipper.nets.frozen import FrozenNetwork
from skipper.types import Agent, Decision, EnvironmentSpec, Stage, TimeStep

GENERATOR, DISTANCES = "generator", "distances"  # the stages


class LeapAgent(TargetLearner):
    """Learns in two stages, each from experience of its own, and acts at random or towards random targets."""

    _plan_state_type = ChainState
    _batches: LeapBatches

    def __init__(self, config: LeapConfig, spec: EnvironmentSpec) -> None:
        self.config, self.spec, self._stage = config, spec, ""
        self.core = LearningCore(config, spec, lambda: LeapNetwork(config, spec))
        self._frozen = FrozenNetwork(self.core.target_network, config, spec)
        self._batches = LeapBatches(self.core, config, spec, self._frozen)
        self._act_rng = named_rng(config.seed, "act")
        self._policy = self._training_policy()
        updater = LeapUpdater(config, self.core.online)
        self._updater = UpdaterProcess(updater, spec) if config.uses_updater_process else updater

    def _training_policy(self) -> RandomTargetPolicy:
        # Aids and ground truth are for evaluation.
        planning = replace(self.config.planning, oracle_parts=())
        config, frozen = replace(self.config, decision=DecisionConfig(), planning=planning), self._frozen
        if not config.learning.act_with_target_network:  # the online network learns between decisions
            frozen = FrozenNetwork(self.core.network, config, self.spec, caching=False)
        return RandomTargetPolicy(frozen, config, self.spec, named_rng(config.seed, "plan"))

    # Stages

    def stages(self) -> tuple[Stage, ...]:
        """The generator first, whose steps are not charged; then distances."""
        settings = self.config.learning
        return (
            Stage(GENERATOR, settings.generator_steps, charged=False, learning_starts=settings.batch_size),
            Stage(DISTANCES, sys.maxsize, charged=True),
        )

    def begin_stage(self, name: str) -> None:
        """Each stage has experience and schedules of its own."""
        self._stage = name
        self.core.begin_stage(self.config.learning.generator_steps if name == GENERATOR else self.config.steps)
        self._updater.restart()

    # Acting

    def act(self, timestep: TimeStep) -> Decision:
        """Random actions, or walks to random targets as soon as there are distances to be learned."""
        settings = self.config.learning
        if settings.training_targets == "none" or self._stage == GENERATOR:
            return Decision(self._act_rng.integers(self.spec.actions, size=len(timestep.first)))
        return self._policy.act(timestep, linear_epsilon(settings, self.core.steps), self._act_rng)

    def evaluator(self, rng: np.random.Generator) -> Agent:
        """The evaluated networks, with caches and a random stream of their own."""
        self._updater.synchronise()
        return evaluation_actor(self.core.evaluated, self.config, self.spec, rng)

    # Learning

    def learn(self) -> Mapping[str, float]:
        """One update of the generator, or of the distances."""
        if self._stage == DISTANCES:
            return super().learn()
        metrics = self._batches.update_generator()
        self.core.updates += 1
        return metrics

    # Saving

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides the future."""
        return super().state_dict() | {"stage": self._stage}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where the state was taken."""
        self._stage = state["stage"]
        super().load_state_dict(state)
