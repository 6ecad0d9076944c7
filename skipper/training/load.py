"""A trained agent in two lines, without anything that only training needs."""

from pathlib import Path

import numpy as np

from skipper.agents.registry import learner_kind
from skipper.agents.skipper.policy import SkipperActor
from skipper.config import RunConfig
from skipper.envs.lava.family import environment_spec
from skipper.planning.proxy import ProxyProblem
from skipper.presets import VARIANTS, as_variant
from skipper.training.run_folder import read_config, read_weights
from skipper.types import Agent, Array, TimeStep, scene_of


class LoadedAgent:
    """A trained agent that acts on single observations or on batches of them."""

    def __init__(self, config: RunConfig, agent: Agent) -> None:
        self.config, self.agent = config, agent
        self._spec = environment_spec(config.world)
        self._first = True

    def act(self, observation: Array, goal: Array | None = None, first: Array | None = None) -> int | Array:
        """The action for an observation (W, H, C), or the actions (B,) for a batch (B, W, H, C).

        ``goal`` is the goal's observation, ``info["goal"]`` of the environment; without it, it is read off the scene.
        ``first`` (B,) says which of a batch begin a new episode; without it, all do after ``reset`` and none else.
        """
        batch, goals = self._batches(observation, goal)
        first = np.full(len(batch), self._first) if first is None else np.asarray(first, bool)
        self._first = False
        action = self.agent.act(TimeStep(batch, goals, first)).action
        return int(action[0]) if np.ndim(observation) == 3 else action

    def plan(self, observation: Array, goal: Array | None = None) -> ProxyProblem:
        """The proxy problem that an agent whose episode begins here solves, with all that is decided in it and why.

        For one observation (W, H, C) a batch of one problem, for (B, W, H, C) B problems. The agent's own plan, memory
        and random stream stay as they are.
        """
        if not isinstance(self.agent, SkipperActor):
            raise ValueError(f"{self.config.agent!r} does not plan; agents that do: {', '.join(sorted(VARIANTS))}")
        return self.agent.plan(*self._batches(observation, goal))

    def _batches(self, observation: Array, goal: Array | None) -> tuple[Array, Array]:
        """Observations and goals (B, W, H, C) from one of them or a batch."""
        observation = np.asarray(observation)
        if not np.issubdtype(observation.dtype, np.integer):
            raise ValueError(f"wanted whole numbers, got an observation of {observation.dtype}")
        spec = self._spec
        if observation.shape[-3:] != spec.shape or observation.ndim not in (3, 4):
            raise ValueError(f"wanted an observation {spec.shape} or a batch of them, got {observation.shape}")
        batch = observation.reshape(-1, *spec.shape)
        if goal is None:
            scene = scene_of(spec)
            return batch, scene.place_agent(batch, scene.goal_cell(batch)[:, None])[:, 0]
        return batch, np.broadcast_to(goal, batch.shape)

    def reset(self) -> None:
        """Say that the next observation begins a new episode."""
        self._first = True


def load(
    path: str | Path, seed: int = 0, agent: str | None = None, *, explain: bool = False, ensemble: int = 1
) -> LoadedAgent:
    """The agent of a run folder, as it is evaluated; ``seed`` decides its few random actions.

    ``agent`` is another variant of Skipper that is to play with the networks of the run. Asked to ``explain``, its
    decisions also say what it looked at. With a larger ``ensemble``, its estimates are means over that many
    symmetric images of what it sees: fewer errors, for as many times the work.
    """
    path = Path(path)
    config = read_config(path)
    weights = read_weights(path, config)
    kind = learner_kind(config.agent)
    if agent is not None:
        config = as_variant(config, agent)
    spec, rng = environment_spec(config.world), np.random.default_rng(seed)
    return LoadedAgent(config, kind.play(config, spec, weights, rng, explain=explain, ensemble=ensemble))
