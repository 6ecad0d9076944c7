"""What limits a trained agent: ground truth in place of one learned part at a time (paper, App. "Accuracy")."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from skipper.agents.skipper.policy import SkipperActor, play_skipper
from skipper.analysis.oracle_metrics import measure_truth
from skipper.config import RunConfig, Truth, WorldConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import Tasks
from skipper.training.evaluate import Summary, play, summarise
from skipper.training.run_folder import read_config, read_weights
from skipper.types import Array

# The name of a row, and what is true in it.
REPLACED: dict[str, tuple[Truth, ...]] = {
    "nothing": (),
    "vertices": ("vertices",),
    "rewards": ("rewards",),
    "terminal head": ("terminal",),
    "edges": ("edges",),
    "policy": ("policy",),
    "edges and policy": ("edges", "policy"),
    "all": ("edges", "vertices", "policy"),
}


class AgentWithOracle:
    """A trained Skipper agent that can be put together anew with some parts replaced by the truth."""

    def __init__(self, config: RunConfig, weights: dict[str, Array], world: WorldConfig) -> None:
        if not config.agent.startswith("skipper"):
            raise ValueError(f"{config.agent!r} does not plan, so there is nothing to replace in it")
        self._config, self._weights, self._spec = config, weights, environment_spec(world)

    def with_truth(self, truth: tuple[Truth, ...], seed: int) -> SkipperActor:
        """The agent with ``truth`` in place of what it learned, and a new random stream.

        True vertices are told apart by their states, not by learned descriptions.
        """
        told_apart = {"match_observations": True} if "vertices" in truth else {}
        return self.planning(seed, oracle_parts=truth, **told_apart)

    def planning(self, seed: int, **changes: Any) -> SkipperActor:
        """The agent with other settings of planning, and a new random stream."""
        config = replace(self._config, planning=replace(self._config.planning, **changes))
        return play_skipper(config, self._spec, self._weights, np.random.default_rng(seed))


def load_with_oracle(path: Path, world: WorldConfig | None = None) -> AgentWithOracle:
    """The agent of a run folder, in its own world or in another one of the same size."""
    config = read_config(path)
    return AgentWithOracle(config, read_weights(path, config), world or config.world)


def diagnose(agent: AgentWithOracle, sets: dict[str, Tasks], seed: int) -> dict[str, dict[str, Summary]]:
    """Success on every set of tasks, for every replacement."""
    return {
        name: {level: summarise(play(agent.with_truth(truth, seed), tasks, seed)) for level, tasks in sets.items()}
        for name, truth in REPLACED.items()
    }


def measure(agent: AgentWithOracle, sets: dict[str, Tasks], seed: int) -> dict[str, dict[str, Any]]:
    """Errors of estimates, walks, plans and generator on every set of tasks, nothing replaced."""
    return {level: measure_truth(agent.with_truth((), seed), tasks, seed) for level, tasks in sets.items()}
