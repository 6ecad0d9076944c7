"""Acting and learning in turn, for any ``Learner``; nothing here evaluates, prints or writes."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from skipper.config import LearningConfig
from skipper.types import Array, Learner, TimeStep, Transition, Worlds


def rewarded_end(reward: Array, terminated: Array) -> Array:
    """(B,) bool, terminated with a reward."""
    success: Array = terminated & (reward > 0)
    return success


class Loop:
    """Environments in lockstep, and the learner's updates at a fixed ratio to their steps."""

    def __init__(
        self,
        learner: Learner,
        envs: Worlds,
        config: LearningConfig,
        seed: int,
        success: Callable[[Array, Array], Array] = rewarded_end,
    ) -> None:
        """``success`` says which steps solved their task, given rewards and terminations."""
        self.learner, self.envs, self.config, self._success = learner, envs, config, success
        self.step = self.updates = 0
        self.outcomes = {"episodes": 0, "successes": 0}  # since they were last taken
        observation, info = envs.reset(seed=seed)
        self._timestep = TimeStep(observation, info["goal"], np.ones(envs.num_envs, bool))

    def advance(self) -> list[Mapping[str, float]]:
        """One step of every environment, and the updates that have become due; returns their metrics."""
        now = self._timestep
        action = self.learner.act(now).action
        observation, reward, terminated, truncated, info = self.envs.step(action)
        ended = terminated | truncated
        next_observation = observation.copy()
        if ended.any():
            next_observation[ended] = info["final_obs"][ended]
        transition = Transition(now.observation, action, reward, next_observation, terminated, truncated)
        self.learner.observe(transition)
        self._timestep = TimeStep(observation, info["goal"], ended)
        self.step += len(action)
        self.outcomes["episodes"] += int(ended.sum())
        self.outcomes["successes"] += int(self._success(reward, terminated).sum())
        return self._learn()

    def _learn(self) -> list[Mapping[str, float]]:
        due = int(max(self.step - self.config.learning_starts, 0) / self.config.steps_per_update)
        metrics = []
        while self.updates < due and self.learner.ready():
            metrics.append(self.learner.learn())
            self.updates += 1
        return metrics

    def take_outcomes(self) -> dict[str, int]:
        """Episodes and successes since this was last called."""
        taken, self.outcomes = self.outcomes, {"episodes": 0, "successes": 0}
        return taken

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides what follows."""
        return {
            "learner": self.learner.state_dict(),
            "envs": self.envs.state_dict(),
            "timestep": dict(self._timestep._asdict()),
            "step": self.step,
            "updates": self.updates,
            "outcomes": dict(self.outcomes),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where the state was taken."""
        self.learner.load_state_dict(state["learner"])
        self.envs.load_state_dict(state["envs"])
        self._timestep = TimeStep(**state["timestep"])
        self.step, self.updates, self.outcomes = state["step"], state["updates"], dict(state["outcomes"])
