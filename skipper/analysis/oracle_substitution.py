"""What limits a trained agent: ground truth replaces one learned part at a time (paper, App. "Accuracy")."""

from pathlib import Path
from typing import Any, get_args

import numpy as np

from skipper.agents.leap.config import LeapConfig, LeapOraclePart
from skipper.agents.leap.policy import LeapActor
from skipper.agents.registry import kind_of
from skipper.agents.skipper.config import SkipperConfig
from skipper.agents.skipper.policy import SkipperActor
from skipper.analysis.oracle_metrics import measure_truth
from skipper.config import OraclePart, RunConfig
from skipper.envs.registry import TaskSet, find_family
from skipper.training.evaluate import Summary, play, summarise
from skipper.training.load import with_settings
from skipper.training.run_folder import read_config, read_weights
from skipper.training.settings import supported
from skipper.types import Array

# Name of a row, and the parts that ground truth replaces in it.
REPLACED: dict[str, tuple[OraclePart, ...]] = {
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
    """A trained agent whose planning can be changed, and parts of which ground truth can replace."""

    def __init__(self, config: RunConfig, weights: dict[str, Array], world: Any) -> None:
        if not isinstance(config, SkipperConfig | LeapConfig):
            raise ValueError(f"{config.agent!r} does not plan, so it has no parts to replace")
        self.family = find_family(config.env)
        self._spec, self._weights = self.family.spec(world), weights
        self._config, _ = supported(config, self._spec)
        known = get_args(LeapOraclePart if isinstance(config, LeapConfig) else OraclePart)
        self.replaceable = {name: parts for name, parts in REPLACED.items() if set(parts) <= set(known)}

    def with_oracle(self, parts: tuple[OraclePart, ...], seed: int) -> SkipperActor | LeapActor:
        """The agent with ground truth in place of ``parts``, and a new random stream.

        True vertices are matched by observations, not by learned descriptions.
        """
        if self._spec.oracle is None:
            raise ValueError(f"the environment {self.family.name!r} offers no ground truth to compare with")
        described = isinstance(self._config, SkipperConfig) and "vertices" in parts
        return self.with_planning(seed, oracle_parts=parts, **({"match_observations": True} if described else {}))

    def with_planning(self, seed: int, **changes: Any) -> SkipperActor | LeapActor:
        """The agent with other planning settings, and a new random stream."""
        config = with_settings(self._config, changes)
        agent = kind_of(config).load().play(config, self._spec, self._weights, np.random.default_rng(seed))
        assert isinstance(agent, SkipperActor | LeapActor)
        return agent


def load_with_oracle(path: Path, world: Any = None) -> AgentWithOracle:
    """The agent of a run folder, in its own world or in another one with observations of the same shape."""
    config = read_config(path)
    return AgentWithOracle(config, read_weights(path), config.world if world is None else world)


def substitute(agent: AgentWithOracle, sets: dict[str, TaskSet], seed: int) -> dict[str, dict[str, Summary]]:
    """Success on every set of tasks, for every replacement."""
    return {
        name: {
            level: summarise(play(agent.with_oracle(parts, seed), agent.family, tasks, seed))
            for level, tasks in sets.items()
        }
        for name, parts in agent.replaceable.items()
    }


def measure(agent: AgentWithOracle, sets: dict[str, TaskSet], seed: int) -> dict[str, dict[str, Any]]:
    """Errors of estimates, walks, plans and generator on every set of tasks, with nothing replaced."""
    return {
        level: measure_truth(agent.with_oracle((), seed), agent.family, tasks, seed) for level, tasks in sets.items()
    }
