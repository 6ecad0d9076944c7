"""Named blocks of configuration: what a run begins with before single fields are changed."""

from dataclasses import replace
from typing import Any

from skipper.config import (
    EvaluationConfig,
    LearningConfig,
    NetworkConfig,
    ReplayConfig,
    RunConfig,
    WorldConfig,
    nearest_name,
)

# The paper to the number; the defaults of the configuration are the paper's.
PAPER = RunConfig(preset="paper")

# Seconds on one core, to see that everything runs; what it learns is not the point.
DEBUG = RunConfig(
    preset="debug",
    steps=2_000,
    tasks=2,
    environments=4,
    threads=1,
    checkpoint_every=400,
    record_every=200,
    world=WorldConfig(width=5, height=5, max_steps=20),
    network=NetworkConfig(embedding=8, partial_width=16, hidden=32),
    learning=LearningConfig(batch_size=16, learning_starts=200, sync_every=200, epsilon_steps=1_000),
    replay=ReplayConfig(capacity=1_000),
    evaluation=EvaluationConfig(evaluate_every=500, evaluation_episodes=5),
)

PRESETS = {"paper": PAPER, "debug": DEBUG}


# What the names of Skipper's variants mean: each is one strategy, changed in the planning block.
VARIANTS: dict[str, dict[str, Any]] = {
    "skipper-once": {"regenerate": "once"},
    "skipper-regen": {"regenerate": "trigger"},
    "skipper-goal": {"always_goal": True},
    "skipper-oracle": {"truth": ("edges", "policy"), "match_states": True},
}


def preset(name: str, agent: str) -> RunConfig:
    """The configuration that a run of ``agent`` begins with."""
    if name not in PRESETS:
        raise ValueError(nearest_name("preset", name, PRESETS))
    base = PRESETS[name]
    return replace(base, agent=agent, planning=replace(base.planning, **VARIANTS.get(agent, {})))
