"""The Skipper agent: acts by planning over imagined checkpoints and learns from hindsight (Alg. 1)."""

from dataclasses import replace

import numpy as np

from skipper.agents.exploration import linear_epsilon
from skipper.agents.learning_core import LearningCore, named_rng
from skipper.agents.skipper.config import SkipperConfig
from skipper.agents.skipper.plan_state import PlanState
from skipper.agents.skipper.policy import SkipperActor, SkipperPolicy, evaluation_policy
from skipper.agents.skipper.update import SkipperBatches, SkipperUpdater
from skipper.agents.target_learner import TargetLearner
from skipper.agents.update_process import UpdaterProcess
from skipper.config import DecisionConfig
from skipper.nets.estimators import SkipperNetwork
from skipper.nets.frozen import FrozenNetwork
from skipper.types import Agent, Decision, EnvironmentSpec, TimeStep


class SkipperAgent(TargetLearner):
    """Learns estimators, checkpoint policy and generator from hindsight, and acts by planning with them."""

    _plan_state_type = PlanState

    def __init__(self, config: SkipperConfig, spec: EnvironmentSpec) -> None:
        self.config, self.spec = config, spec
        self.core = LearningCore(config, spec, lambda: SkipperNetwork(config, spec))
        self._frozen = FrozenNetwork(self.core.target_network, config, spec)
        self._policy = self._training_policy()
        self._batches = SkipperBatches(self.core, config, spec, self._frozen)
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
