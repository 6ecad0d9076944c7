"""Named blocks of defaults that all agents start from; each agent adds its own."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from skipper.config import EstimatorRunConfig, EvaluationConfig, LearningConfig, NetworkConfig, ReplayConfig, RunConfig
from skipper.runtime.checks import nearest_name

# The paper's numbers: the defaults of the configuration. docs/deviations.md lists what differs all the same.
PAPER = EstimatorRunConfig(preset="paper")

# Seconds on one core, to see that everything runs; not enough to learn much.
DEBUG = EstimatorRunConfig(
    preset="debug",
    steps=2_000,
    tasks=2,
    environments=4,
    threads=1,
    checkpoint_every=400,
    record_every=200,
    network=NetworkConfig(embedding=8, partial_width=16, hidden=32),
    learning=LearningConfig(batch_size=16, learning_starts=200, target_update_every=200, epsilon_steps=1_000),
    replay=ReplayConfig(capacity=1_000),
    evaluation=EvaluationConfig(evaluate_every=500, evaluation_episodes=5),
)

# What measurements found to speed up learning; docs/deviations.md describes what is not in the paper.
FAST = EstimatorRunConfig(
    preset="fast",
    steps=800_000,
    environments=64,
    checkpoint_every=50_000,
    network=NetworkConfig(hidden=128, linear_scores=True, scaled_start=True, pessimistic_heads=True),
    learning=LearningConfig(
        steps_per_update=24.0,
        learning_starts=2_000,
        target_update_every=4_800,
        learning_rate=1e-3,
        final_learning_rate_fraction=0.1,
        adam_epsilon=1e-7,
        symmetries=True,
        ema_decay=0.999,
        epsilon_end=0.4,
        epsilon_steps=120_000,
    ),
    replay=ReplayConfig(capacity=200_000),
    evaluation=EvaluationConfig(evaluate_every=100_000, evaluation_episodes=50),
)

Table = Mapping[str, Mapping[str, Mapping[str, Any]]]  # settings by preset, block and name

PRESETS = {"paper": PAPER, "fast": FAST, "debug": DEBUG}


def shared_preset(name: str) -> EstimatorRunConfig:
    """What every agent starts from with the preset ``name``."""
    if name not in PRESETS:
        raise ValueError(nearest_name("preset", name, PRESETS))
    return PRESETS[name]


def common_values(name: str) -> dict[str, Any]:
    """What the preset ``name`` says of runs of any agent; how to learn and what to store is each agent's own."""
    own, shared = ("learning", "replay"), shared_preset(name)
    return {entry.name: getattr(shared, entry.name) for entry in fields(RunConfig) if entry.name not in own}


def added(preset: str, *tables: Table) -> dict[str, dict[str, Any]]:
    """What tables add to a preset, by block; later ones win."""
    found: dict[str, dict[str, Any]] = {}
    for table in tables:
        for block, settings in table.get(preset, {}).items():
            found[block] = found.get(block, {}) | dict(settings)
    return found
