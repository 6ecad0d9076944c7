"""What each setting of planning is worth: one set of networks, one change at a time."""

from typing import Any

from skipper.analysis.oracle_substitution import AgentWithOracle
from skipper.envs.lava.tasks import Tasks
from skipper.training.evaluate import Summary, play, summarise

# The name of a row, and what is changed in it.
CHANGES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "no revisit_penalty": {"revisit_penalty": 0.0},
    "no edge_length_penalty": {"edge_length_penalty": 0.0},
    "5 sweeps": {"sweeps": 5},
    "12 vertices kept of 32": {"prune_vertices": True, "max_vertices": 12, "checkpoints": 30},
    "16 vertices": {"prune_vertices": False, "checkpoints": 14},
    "plans on a trigger": {"regenerate": "trigger"},
    "checkpoints imagined once": {"regenerate": "once"},
    "checkpoints met by code": {"match_observations": False},
    "always the goal": {"always_goal": True},
}


def ablate(agent: AgentWithOracle, sets: dict[str, Tasks], seed: int) -> dict[str, dict[str, Summary]]:
    """Success on every set of tasks, for every change."""
    return {
        name: {level: summarise(play(agent.planning(seed, **change), tasks, seed)) for level, tasks in sets.items()}
        for name, change in CHANGES.items()
    }
