"""Named blocks of configuration: what a run begins with before single fields are changed."""

from dataclasses import replace
from typing import Any

from skipper.config import (
    EvaluationConfig,
    GeneratorConfig,
    LearningConfig,
    NetworkConfig,
    PlanningConfig,
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
    learning=LearningConfig(batch_size=16, learning_starts=200, target_update_every=200, epsilon_steps=1_000),
    replay=ReplayConfig(capacity=1_000),
    evaluation=EvaluationConfig(evaluate_every=500, evaluation_episodes=5),
)

# Everything that measurements found to speed learning up; what is not in the paper is described in docs/deviations.md.
FAST = RunConfig(
    preset="fast",
    steps=600_000,
    environments=64,
    checkpoint_every=50_000,
    network=NetworkConfig(hidden=128, scaled_start=True, pessimistic_heads=True),
    generator=GeneratorConfig(generator_width=8, flat_description=True, generator_every=4),
    planning=PlanningConfig(
        prune_vertices=False,
        regenerate="step",
        revisit_penalty=0.5,
        edge_length_penalty=0.03,
        sweeps=16,
        match_observations=True,
    ),
    learning=LearningConfig(
        steps_per_update=24.0,
        learning_starts=2_000,
        target_update_every=12_000,
        learning_rate=1e-3,
        final_learning_rate_fraction=0.1,
        adam_epsilon=1e-7,
        delusion_scale=0.25,
        hindsight_bound=True,
        act_with_target_network=True,
        practice=True,
        updater_process=True,
        symmetries=True,
        ema_decay=0.999,
        epsilon_end=0.4,
        epsilon_steps=120_000,
    ),
    replay=ReplayConfig(
        capacity=200_000,
        all_pairs=True,
        pair_episodes=8,
        pair_transitions=12,
        pair_targets=8,
        pair_endings=0.5,
        other_episodes=0.1,
    ),
    evaluation=EvaluationConfig(evaluate_every=100_000, evaluation_episodes=50),
)

PRESETS = {"paper": PAPER, "fast": FAST, "debug": DEBUG}


# What the names of Skipper's variants mean: each is one strategy, changed in the planning block.
VARIANTS: dict[str, dict[str, Any]] = {
    "skipper-once": {"regenerate": "once"},
    "skipper-regen": {},  # how often is the preset's choice
    "skipper-goal": {"always_goal": True},
    "skipper-oracle": {"oracle_parts": ("edges", "policy"), "match_observations": True},
}


# An agent without targets is only good near where it acted well, so it explores less; and it learns from few single
# transitions at a time, which takes smaller steps.
MODELFREE_LEARNING: dict[str, dict[str, Any]] = {"fast": {"epsilon_end": 0.05, "learning_rate": 5e-4}}


def preset(name: str, agent: str) -> RunConfig:
    """The configuration that a run of ``agent`` begins with."""
    if name not in PRESETS:
        raise ValueError(nearest_name("preset", name, PRESETS))
    base = PRESETS[name]
    if agent == "modelfree":
        base = replace(base, learning=replace(base.learning, **MODELFREE_LEARNING.get(name, {})))
    return replace(base, agent=agent, planning=replace(base.planning, **VARIANTS.get(agent, {})))


def as_variant(config: RunConfig, agent: str) -> RunConfig:
    """The configuration of a trained Skipper whose networks play as another variant."""
    for name in (config.agent, agent):
        if name not in VARIANTS:
            raise ValueError(
                f"only variants of Skipper play with each other's networks: {', '.join(VARIANTS)}; not {name!r}"
            )
    if config.preset not in PRESETS:
        raise ValueError(nearest_name("preset", config.preset, PRESETS))
    undone = {field: getattr(PRESETS[config.preset].planning, field) for field in VARIANTS[config.agent]}
    return replace(config, agent=agent, planning=replace(config.planning, **(undone | VARIANTS[agent])))
