"""The effect of each planning setting: one set of networks, one change at a time."""

from typing import Any

from skipper.analysis.oracle_substitution import AgentWithOracle
from skipper.envs.registry import TaskSet
from skipper.training.evaluate import Summary, play, summarise

# Name of a row, and the settings that change in it.
CHANGES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "no revisit_penalty": {"revisit_penalty": 0.0},
    "no edge_length_penalty": {"edge_length_penalty": 0.0},
    "5 sweeps": {"sweeps": 5},
    "12 vertices kept of 32": {"prune_vertices": True, "max_vertices": 12, "checkpoints": 30},
    "16 vertices": {"prune_vertices": False, "checkpoints": 14},
    "imagined once, on a trigger": {"regenerate": False, "replan": "trigger"},
    "once, at every step": {"regenerate": False, "replan": "step"},
    "anew, on a trigger": {"regenerate": True, "replan": "trigger"},
    "anew, at every step": {"regenerate": True, "replan": "step"},
    "checkpoints met by code": {"match_observations": False},
    "always the goal": {"always_goal": True},
}


def ablate(agent: AgentWithOracle, sets: dict[str, TaskSet], seed: int) -> dict[str, dict[str, Summary]]:
    """Success on every set of tasks, for every change."""
    return {
        name: {
            level: summarise(play(agent.with_planning(seed, **change), agent.family, tasks, seed))
            for level, tasks in sets.items()
        }
        for name, change in CHANGES.items()
    }
