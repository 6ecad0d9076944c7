"""A trained agent in two lines, without anything that only training needs."""

from pathlib import Path

import numpy as np

from skipper.agents.registry import learner_kind
from skipper.config import RunConfig
from skipper.envs.spec import environment_spec
from skipper.training.folder import read_config, read_weights
from skipper.types import Agent, Array, TimeStep


class LoadedAgent:
    """A trained agent that acts on single observations or on batches of them."""

    def __init__(self, config: RunConfig, agent: Agent) -> None:
        self.config, self.agent = config, agent
        self._first = True

    def act(self, observation: Array, goal: Array | None = None, first: Array | None = None) -> int | Array:
        """The action for an observation (W, H, C), or the actions (B,) for a batch (B, W, H, C).

        ``goal`` is the goal's observation, ``info["goal"]`` of the environment; only agents that plan need it.
        ``first`` (B,) says which of a batch begin a new episode; without it, all do after ``reset`` and none else.
        """
        observation = np.asarray(observation)
        if not np.issubdtype(observation.dtype, np.integer):
            raise ValueError(f"wanted whole numbers, got an observation of {observation.dtype}")
        if goal is None and self.config.agent.startswith("skipper"):
            raise ValueError("this agent plans and needs the goal's observation, info['goal'] of the environment")
        shape = environment_spec(self.config.world).shape
        if observation.shape[-3:] != shape or observation.ndim not in (3, 4):
            raise ValueError(f"wanted an observation {shape} or a batch of them, got {observation.shape}")
        batch = observation.reshape(-1, *shape)
        goals = batch if goal is None else np.broadcast_to(goal, batch.shape)
        first = np.full(len(batch), self._first) if first is None else np.asarray(first, bool)
        self._first = False
        action = self.agent.act(TimeStep(batch, goals, first)).action
        return int(action[0]) if observation.ndim == 3 else action

    def reset(self) -> None:
        """Say that the next observation begins a new episode."""
        self._first = True


def load(path: str | Path, seed: int = 0) -> LoadedAgent:
    """The agent of a run folder, as it is evaluated; ``seed`` decides its few random actions."""
    path = Path(path)
    config = read_config(path)
    weights = read_weights(path, config)
    kind = learner_kind(config.agent)
    return LoadedAgent(config, kind.play(config, environment_spec(config.world), weights, np.random.default_rng(seed)))
