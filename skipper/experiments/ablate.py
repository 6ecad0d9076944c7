"""The effect of each setting of a decision: one set of networks, one change per row."""

from pathlib import Path
from typing import Any

import numpy as np

from skipper.agents.registry import kind_of
from skipper.config import RunConfig
from skipper.envs.registry import TaskSet, find_family
from skipper.training.evaluate import Summary, play, summarise
from skipper.training.load import with_settings
from skipper.training.run_folder import read_config, read_weights
from skipper.training.settings import supported
from skipper.types import EnvironmentSpec

NOTHING = "nothing"
REVISIT_PENALTY = 0.1  # for agents that were trained without one
# Name of a row, and the settings of planning that change in it; agents without these settings have no such row.
PLANNING: dict[str, dict[str, Any]] = {
    "no edge_length_penalty": {"edge_length_penalty": 0.0},
    "no edge_backups": {"edge_backups": 0},
    "5 sweeps": {"sweeps": 5},
    "12 vertices kept of 32": {"prune_vertices": True, "max_vertices": 12, "checkpoints": 30},
    "16 vertices": {"prune_vertices": False, "checkpoints": 14},
    "once, on a trigger": {"regenerate": False, "replan": "trigger"},
    "once, at every step": {"regenerate": False, "replan": "step"},
    "anew, on a trigger": {"regenerate": True, "replan": "trigger"},
    "anew, at every step": {"regenerate": True, "replan": "step"},
    "checkpoints met by code": {"match_observations": False},
    "always the goal": {"always_goal": True},
    "one subgoal": {"subgoals": 1},
    "reached subgoals left out": {"exclude_reached": True},
}


def ablate(path: Path, world: Any, sets: dict[str, TaskSet], seed: int) -> dict[str, dict[str, Summary]]:
    """Success of the agent of a run folder on every set of tasks, for every change."""
    config, weights = read_config(path), read_weights(path)
    family = find_family(config.env)
    spec = family.spec(world)
    used, _ = supported(config, spec)

    def success(change: dict[str, Any], tasks: TaskSet) -> Summary:
        agent = kind_of(used).load().play(with_settings(used, change), spec, weights, np.random.default_rng(seed))
        return summarise(play(agent, family, tasks, seed))

    return {
        name: {level: success(change, tasks) for level, tasks in sets.items()}
        for name, change in changes(used, spec).items()
    }


def changes(config: RunConfig, spec: EnvironmentSpec) -> dict[str, dict[str, Any]]:
    """The rows that there are for an agent: every agent without and with the aids, and settings of planning."""
    penalty = config.decision.revisit_penalty or REVISIT_PENALTY
    images = 1 if spec.symmetries is None else len(spec.symmetries.cells)
    rows: dict[str, dict[str, Any]] = {
        NOTHING: {},
        "no aids": {"revisit_penalty": 0.0, "ensemble": 1},
        f"revisit_penalty {penalty:g} alone": {"revisit_penalty": penalty, "ensemble": 1},
    }
    if images > 1:
        rows[f"ensemble {images} alone"] = {"revisit_penalty": 0.0, "ensemble": images}
        rows["both"] = {"revisit_penalty": penalty, "ensemble": images}
    planning = getattr(config, "planning", None)
    return rows | {row: change for row, change in PLANNING.items() if all(hasattr(planning, name) for name in change)}
