"""The loop of acting and learning, for any ``Learner``; evaluation and recording are outside."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from skipper.config import ScheduleConfig
from skipper.types import Array, Learner, Stage, StagedLearner, TimeStep, Transition, Worlds

ONE_STAGE = (Stage("training", sys.maxsize, charged=True),)


def rewarded_end(reward: Array, terminated: Array) -> Array:
    """(B,) bool, terminated with a reward."""
    success: Array = terminated & (reward > 0)
    return success


class Loop:
    """Steps environments in lockstep, and updates the learner at a fixed ratio to their steps.

    ``step`` counts the environment steps that are charged to the run; ``uncharged`` those of the other stages.
    """

    def __init__(
        self,
        learner: Learner,
        envs: Worlds,
        config: ScheduleConfig,
        seed: int,
        success: Callable[[Array, Array], Array] = rewarded_end,
    ) -> None:
        """``success`` says which steps solved their tasks, from rewards and terminations."""
        self.learner, self.envs, self.config, self._success = learner, envs, config, success
        self.stages = learner.stages() if isinstance(learner, StagedLearner) else ONE_STAGE
        if not self.stages[-1].charged:
            raise ValueError("the steps of the last stage must be charged, or the run would never end")
        self.step = self.uncharged = self.updates = 0
        self.stage = self._stage_steps = self._stage_updates = 0  # index of the stage, and what was done in it
        self.outcomes = {"episodes": 0, "successes": 0}  # since they were last taken
        observation, info = envs.reset(seed=seed)
        self._timestep = TimeStep(observation, info["goal"], np.ones(envs.num_envs, bool))

    @property
    def all_steps(self) -> int:
        """Environment steps of all stages."""
        return self.step + self.uncharged

    def advance(self) -> list[Mapping[str, float]]:
        """One step of every environment, and the updates that are due; returns their metrics."""
        self._begin_stage_when_due()
        # Act, and step the environments.
        now = self._timestep
        action = self.learner.act(now).action
        observation, reward, terminated, truncated, info = self.envs.step(action)
        # A transition ends in the last observation of its episode, not in the first one of the next.
        ended = terminated | truncated
        next_observation = observation.copy()
        if ended.any():
            next_observation[ended] = info["final_obs"][ended]
        transition = Transition(now.observation, action, reward, next_observation, terminated, truncated)
        self.learner.observe(transition)
        self._timestep = TimeStep(observation, info["goal"], ended)
        self._count(len(action), int(ended.sum()), int(self._success(reward, terminated).sum()))
        return self._learn()

    def _begin_stage_when_due(self) -> None:
        """Begin the first stage, or the next one when the budget of the current one is used up."""
        while self._stage_steps >= self.stages[self.stage].steps and self.stage + 1 < len(self.stages):
            self.stage, self._stage_steps, self._stage_updates = self.stage + 1, 0, 0
        if self._stage_steps == 0 and isinstance(self.learner, StagedLearner):
            self.learner.begin_stage(self.stages[self.stage].name)

    def _count(self, steps: int, episodes: int, successes: int) -> None:
        self._stage_steps += steps
        if self.stages[self.stage].charged:
            self.step += steps
        else:
            self.uncharged += steps
        self.outcomes["episodes"] += episodes
        self.outcomes["successes"] += successes

    def _learn(self) -> list[Mapping[str, float]]:
        starts = self.stages[self.stage].learning_starts
        starts = self.config.learning_starts if starts is None else starts
        due = int(max(self._stage_steps - starts, 0) / self.config.steps_per_update)
        metrics = []
        while self._stage_updates < due and self.learner.ready():
            metrics.append(self.learner.learn())
            self.updates += 1
            self._stage_updates += 1
        return metrics

    def take_outcomes(self) -> dict[str, int]:
        """Episodes and successes since the last call."""
        taken, self.outcomes = self.outcomes, {"episodes": 0, "successes": 0}
        return taken

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides what follows."""
        return {
            "learner": self.learner.state_dict(),
            "envs": self.envs.state_dict(),
            "timestep": dict(self._timestep._asdict()),
            "step": self.step,
            "uncharged": self.uncharged,
            "updates": self.updates,
            "stage": {"index": self.stage, "steps": self._stage_steps, "updates": self._stage_updates},
            "outcomes": dict(self.outcomes),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where the state was taken."""
        self.learner.load_state_dict(state["learner"])
        self.envs.load_state_dict(state["envs"])
        self._timestep = TimeStep(**state["timestep"])
        self.step, self.uncharged, self.updates = state["step"], state["uncharged"], state["updates"]
        stage = state["stage"]
        self.stage, self._stage_steps = stage["index"], stage["steps"]
        self._stage_updates = stage.get("updates", self.updates)  # older runs had one stage
        self.outcomes = dict(state["outcomes"])
