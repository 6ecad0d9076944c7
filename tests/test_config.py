from dataclasses import FrozenInstanceError, fields, is_dataclass, replace

import pytest

from skipper.config import (
    EvaluationConfig,
    LearningConfig,
    NetworkConfig,
    ReplayConfig,
    RunConfig,
    WorldConfig,
    content_hash,
    differences,
    from_dict,
    to_dict,
)
from skipper.presets import DEBUG, PAPER, as_variant, preset


def test_field_and_most_lava_of_the_paper():
    world = WorldConfig()
    assert (world.cells, world.field, world.max_lava) == (144, 120, 110)


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"width": 2}, "at least 3"),
        ({"height": 2}, "at least 3"),
        ({"slip": -0.1}, "possible: 0 to 1"),
        ({"slip": 1.1}, "possible: 0 to 1"),
        ({"slip": float("nan")}, "possible: 0 to 1"),
        ({"difficulty": 0.93}, "at most 110 are possible"),
        ({"difficulty": 0.9, "spread": 0.05}, "difficulty \\+ spread <= 0.917"),
        ({"difficulty": -0.1}, "possible: 0 to 0.917"),
        ({"difficulty": 0.02, "spread": 0.05}, "possible: 0.05 to 0.867"),
        ({"difficulty": float("nan")}, "falls below 0"),
        ({"spread": -0.1}, "must be 0 to 0.458"),
        ({"spread": 0.6}, "must be 0 to 0.458"),
        ({"width": 12.0}, "whole number"),
        ({"max_steps": 2.5}, "whole number"),
        ({"max_steps": 0}, "at least 1"),
        ({"dynamics": "water"}, "available: lava, walls"),
        ({"start": "anywhere"}, "available: uniform, fixed"),
    ],
)
def test_the_impossible_is_refused_with_what_would_be_possible(fields, wanted):
    with pytest.raises(ValueError, match=wanted):
        WorldConfig(**fields)


def test_configuration_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        WorldConfig().slip = 0.5


def test_the_limits_themselves_are_possible():
    WorldConfig(slip=1.0, max_steps=1)
    WorldConfig(difficulty=110.9 / 120)
    with pytest.raises(ValueError, match="leaves no path"):
        WorldConfig(difficulty=111 / 120)


def test_a_configuration_survives_json():
    for config in (PAPER, DEBUG):
        assert from_dict(RunConfig, to_dict(config)) == config


def changed(**fields):
    data = to_dict(DEBUG)
    for path, value in fields.items():
        part = data
        *rooms, name = path.split("__")
        for room in rooms:
            part = part[room]
        part[name] = value
    return data


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (changed(sed=3), "unknown field 'sed'.*did you mean 'seed'"),
        (changed(learning__batchsize=3), r"learning: unknown field 'batchsize'.*did you mean 'batch_size'"),
        (changed(seed="3"), "seed: wanted int, got '3'"),
        (changed(seed=True), "seed: wanted int, got True"),
        (changed(seed=3.5), "seed: wanted int"),
        (changed(evaluation__difficulties=0.3), "wanted a list"),
        (changed(evaluation__difficulties=["a"]), "wanted float, got 'a'"),
        (changed(world=None), "world: wanted an object"),
        (changed(world__slip=-1), "possible: 0 to 1"),
        (changed(replay__strategy="past"), "available: episode, future"),
        ({"seed": 1}, "missing agent"),
        ([], "wanted an object"),
    ],
)
def test_what_is_no_configuration_is_refused(data, wanted):
    with pytest.raises(ValueError, match=wanted):
        from_dict(RunConfig, data)


def test_whole_numbers_may_stand_for_floats():
    assert from_dict(RunConfig, changed(learning__learning_rate=1)).learning.learning_rate == 1.0


def test_the_hash_is_that_of_the_content():
    assert content_hash(DEBUG) == content_hash(replace(DEBUG))
    other = replace(DEBUG, network=replace(DEBUG.network, hidden=33))
    assert content_hash(DEBUG) != content_hash(other)
    assert differences(DEBUG, other) == ["network.hidden: 32 -> 33"]
    assert differences(DEBUG, DEBUG) == []


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (NetworkConfig, {"embedding": 0}),
        (NetworkConfig, {"bins": 1}),
        (LearningConfig, {"batch_size": 0}),
        (LearningConfig, {"task_discount": 1.0}),
        (LearningConfig, {"policy_discount": 0.0}),
        (ReplayConfig, {"capacity": 0}),
        (ReplayConfig, {"targets": -1}),
        (RunConfig, {"steps": 0}),
        (RunConfig, {"seed": -1}),
        (RunConfig, {"tasks": -1}),
        (RunConfig, {"seed": 10**23}),
        (LearningConfig, {"epsilon_start": 7.0}),
        (LearningConfig, {"gradient_clip": float("nan")}),
        (LearningConfig, {"learning_starts": -1}),
        (ReplayConfig, {"alpha": float("nan")}),
        (ReplayConfig, {"beta": -3.0}),
        (EvaluationConfig, {"training_task_start": "anywhere"}),
    ],
)
def test_impossible_numbers_are_refused(kind, fields):
    with pytest.raises(ValueError, match=next(iter(fields))):
        kind(**fields)


def test_what_cannot_work_together_is_refused():
    with pytest.raises(ValueError, match="capacity must exceed an episode's 64 steps"):
        RunConfig(replay=ReplayConfig(capacity=64))
    with pytest.raises(ValueError, match="leaves no path"):
        RunConfig(evaluation=EvaluationConfig(difficulties=(0.3, 0.99)))


def test_the_paper_preset_is_the_paper():
    paper = preset("paper", "modelfree")
    assert (paper.steps, paper.tasks, paper.world.difficulty, paper.world.max_steps) == (1_500_000, 50, 0.4, 64)
    network, learning, replay = paper.network, paper.learning, paper.replay
    assert (network.embedding, network.field_size, network.fields, network.partial_width) == (16, 8, 4, 128)
    assert (network.hidden, network.bins) == (256, 16)
    assert (learning.batch_size, learning.steps_per_update, learning.learning_starts) == (64, 4, 20_000)
    assert (learning.target_update_every, learning.learning_rate, learning.adam_epsilon) == (8_000, 2.5e-4, 1.5e-4)
    assert (learning.gradient_clip, learning.task_discount, learning.policy_discount) == (1.0, 0.99, 0.95)
    assert (learning.epsilon_start, learning.epsilon_end, learning.epsilon_steps) == (1.0, 0.01, 1_000_000)
    assert (replay.capacity, replay.targets, replay.alpha, replay.beta) == (1_000_000, 4, 0.6, 0.4)
    assert (paper.evaluation.evaluate_every, paper.evaluation.evaluation_episodes) == (50_000, 20)
    assert not network.scaled_start
    assert not network.pessimistic_heads
    with pytest.raises(ValueError, match="available: debug, fast, paper"):
        preset("papers", "modelfree")


def test_no_two_fields_of_a_run_share_a_name():
    """The command line has no rooms: every field is an option of its own name."""
    names = []
    for entry in fields(RunConfig):
        value = getattr(PAPER, entry.name)
        names += [inner.name for inner in fields(value)] if is_dataclass(value) else [entry.name]
    assert len(names) == len(set(names))


def test_variants_play_with_each_others_networks():
    once, regen = preset("fast", "skipper-once"), preset("fast", "skipper-regen")
    assert as_variant(regen, "skipper-once") == once
    assert as_variant(once, "skipper-regen") == regen
    assert as_variant(once, "skipper-goal").planning == replace(regen.planning, always_goal=True)
    doubting = replace(once, planning=replace(once.planning, revisit_penalty=0.3))
    assert as_variant(doubting, "skipper-regen").planning == replace(regen.planning, revisit_penalty=0.3)
    for config, agent in ((regen, "modelfree"), (preset("fast", "modelfree"), "skipper-once")):
        with pytest.raises(ValueError, match=r"only variants of Skipper.*not 'modelfree'"):
            as_variant(config, agent)


def test_the_fast_preset_gives_the_baseline_its_own_exploration():
    plain, baseline = preset("fast", "skipper-regen").learning, preset("fast", "modelfree").learning
    assert baseline.epsilon_end < plain.epsilon_end
    assert baseline.symmetries
    assert preset("paper", "modelfree").learning == preset("paper", "skipper-once").learning
