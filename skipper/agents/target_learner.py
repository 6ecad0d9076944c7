"""What learning agents that walk to targets share: experience, updates in this or another process, and saving."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from skipper.agents.hindsight import HindsightBatches, UpdateBatch, Updater
from skipper.agents.learning_core import LearningCore, module_state
from skipper.agents.update_process import UpdaterProcess
from skipper.nets.frozen import FrozenNetwork
from skipper.types import Array, Decision, TimeStep, Transition


class Batches(Protocol):
    """Prepares the batches of an agent's updates."""

    draw: HindsightBatches

    def prepare(self) -> UpdateBatch:
        """The batch of the next update."""


class TrainingPolicy(Protocol):
    """How an agent acts in training."""

    plan_state: Any  # a named tuple of arrays, or None before the first decision
    rng: np.random.Generator

    def act(self, timestep: TimeStep, epsilon: float, rng: np.random.Generator) -> Decision:
        """Decide, or take a random action with probability ``epsilon``."""


class TargetLearner:
    """A learner without its acting; agents set these parts when they are built."""

    core: LearningCore[Any]
    _frozen: FrozenNetwork
    _policy: TrainingPolicy
    _plan_state_type: type[Any]  # of the policy
    _batches: Batches
    _updater: Updater[Any] | UpdaterProcess
    _act_rng: np.random.Generator

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
        """One update of everything (Alg. 1, "time to train")."""
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
            "plan_state": _copied(plans._asdict()) if plans is not None else {},
            "rngs": {name: rng.bit_generator.state for name, rng in self._rngs().items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where the state was taken."""
        self.core.load_state_dict(state["core"])
        self._batches.draw.sampler.load_state_dict(state["sampler"])
        self._frozen.load_state_dict(state["frozen"])
        self._updater.restart()
        plans = state["plan_state"]
        self._policy.plan_state = self._plan_state_type(**_copied(plans)) if plans else None
        for name, rng in self._rngs().items():
            rng.bit_generator.state = state["rngs"][name]

    def _rngs(self) -> dict[str, np.random.Generator]:
        return {"act": self._act_rng, "imagine": self._batches.draw.rng, "plan": self._policy.rng}


def _copied(columns: Mapping[str, Array]) -> dict[str, Array]:
    return {name: column.copy() for name, column in columns.items()}
