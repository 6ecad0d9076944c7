from dataclasses import FrozenInstanceError

import pytest

from skipper.envs.lava.config import LavaConfig


def test_field_and_most_lava_of_the_paper():
    world = LavaConfig()
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
        ({"start": "anywhere"}, "available: fixed, uniform"),
    ],
)
def test_the_impossible_is_refused_with_what_would_be_possible(fields, wanted):
    with pytest.raises(ValueError, match=wanted):
        LavaConfig(**fields)


def test_configuration_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        LavaConfig().slip = 0.5


def test_the_limits_themselves_are_possible():
    LavaConfig(slip=1.0, max_steps=1)
    LavaConfig(difficulty=110.9 / 120)
    with pytest.raises(ValueError, match="leaves no path"):
        LavaConfig(difficulty=111 / 120)


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"difficulties": (0.3, 0.99)}, "leaves no path"),
        ({"difficulty_spread": 0.6}, "must be 0 to 0.458"),
        ({"training_task_start": "anywhere"}, "unknown training_task_start"),
    ],
)
def test_evaluation_sets_that_cannot_exist_are_refused_before_training(fields, wanted):
    with pytest.raises(ValueError, match=wanted):
        LavaConfig(**fields)


def test_a_world_that_slips_is_not_deterministic():
    assert LavaConfig().deterministic
    assert not LavaConfig(slip=0.1).deterministic
