from dataclasses import FrozenInstanceError, fields, is_dataclass, replace

import pytest

from skipper.agents.leap.config import LeapConfig
from skipper.agents.modelfree.config import ModelFreeConfig
from skipper.agents.skipper.config import SkipperConfig, SkipperLearningConfig
from skipper.config import (
    EvaluationConfig,
    LearningConfig,
    NetworkConfig,
    PlanningConfig,
    ReplayConfig,
    RunConfig,
    WorldConfig,
)
from skipper.replay.relabel import HindsightConfig


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (WorldConfig, {"max_steps": 0}),
        (NetworkConfig, {"embedding": 0}),
        (NetworkConfig, {"bins": 1}),
        (PlanningConfig, {"max_vertices": 1}),
        (PlanningConfig, {"regenerate": "never"}),
        (PlanningConfig, {"replan": "never"}),
        (LearningConfig, {"batch_size": 0}),
        (LearningConfig, {"task_discount": 1.0}),
        (LearningConfig, {"epsilon_start": 7.0}),
        (LearningConfig, {"gradient_clip": float("nan")}),
        (LearningConfig, {"learning_starts": -1}),
        (SkipperLearningConfig, {"policy_discount": 0.0}),
        (SkipperLearningConfig, {"delusion_scale": -1.0}),
        (SkipperLearningConfig, {"training_targets": "goal"}),
        (ReplayConfig, {"capacity": 0}),
        (ReplayConfig, {"alpha": float("nan")}),
        (ReplayConfig, {"beta": -3.0}),
        (HindsightConfig, {"targets": 0}),
        (HindsightConfig, {"strategy": "past"}),
        (RunConfig, {"steps": 0}),
        (RunConfig, {"seed": -1}),
        (RunConfig, {"tasks": -1}),
        (RunConfig, {"seed": 10**23}),
        (EvaluationConfig, {"evaluate_every": 0}),
        (EvaluationConfig, {"split": "train"}),
    ],
)
def test_impossible_values_are_refused(kind, fields):
    with pytest.raises(ValueError, match=next(iter(fields))):
        kind(**fields)


def test_an_unknown_oracle_part_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match=r"unknown oracle part 'edge'.*did you mean 'edges'"):
        PlanningConfig(oracle_parts=("edge",))


def test_settings_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        RunConfig().seed = 5


def test_settings_that_cannot_work_together_are_refused():
    with pytest.raises(ValueError, match="capacity must exceed an episode's 64 steps"):
        RunConfig(replay=ReplayConfig(capacity=64))
    bound = SkipperLearningConfig(hindsight_bound=True)
    with pytest.raises(ValueError, match="hindsight_bound needs all_pairs"):
        SkipperConfig(learning=bound)
    with pytest.raises(ValueError, match="max_distance must be the last of the 16 bins, got 8"):
        SkipperConfig(planning=PlanningConfig(max_distance=8.0))
    process = SkipperLearningConfig(updater_process=True, act_with_target_network=True)
    with pytest.raises(ValueError, match="updater_process needs all_pairs, and act_with"):
        SkipperConfig(learning=process)
    SkipperConfig(learning=process, replay=HindsightConfig(all_pairs=True))
    with pytest.raises(ValueError, match="updater_process needs all_pairs, and act_with"):
        SkipperConfig(learning=replace(process, act_with_target_network=False), replay=HindsightConfig(all_pairs=True))
    at_random = replace(process, act_with_target_network=False, training_targets="none")
    SkipperConfig(learning=at_random, replay=HindsightConfig(all_pairs=True))


@pytest.mark.parametrize("kind", [RunConfig, SkipperConfig, LeapConfig, ModelFreeConfig])
def test_no_two_fields_of_a_run_share_a_name(kind):
    """The command line has no blocks: every field is an option of its own name."""
    config, names = kind(), []
    for entry in fields(config):
        value = getattr(config, entry.name)
        names += [inner.name for inner in fields(value)] if is_dataclass(value) else [entry.name]
    assert len(names) == len(set(names))


def test_the_updater_process_takes_one_of_the_threads():
    config = SkipperConfig(
        threads=2,
        learning=SkipperLearningConfig(updater_process=True, act_with_target_network=True),
        replay=HindsightConfig(all_pairs=True),
    )
    assert (config.uses_updater_process, config.network_threads) == (True, 1)
    alone = replace(config, threads=1)
    assert (alone.uses_updater_process, alone.network_threads) == (False, 1)
