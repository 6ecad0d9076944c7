"""Configurations as JSON: exact, refused where they are wrong, and readable by later versions."""

from dataclasses import dataclass, field, replace

import pytest

from skipper.agents.leap.config import LeapConfig
from skipper.agents.skipper.config import SkipperConfig
from skipper.config import EstimatorRunConfig, RunConfig
from skipper.schema import SCHEMA, content_hash, differences, from_dict, migrated, to_dict


def test_a_configuration_survives_json():
    for config in (RunConfig(seed=3), SkipperConfig(seed=3)):
        assert from_dict(type(config), to_dict(config)) == config


def changed(**fields):
    data = to_dict(SkipperConfig())
    for path, value in fields.items():
        part = data
        *blocks, name = path.split("__")
        for block in blocks:
            part = part[block]
        part[name] = value
    return data


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (changed(sed=3), "unknown field 'sed'.*did you mean 'seed'"),
        (changed(learning__batchsize=3), r"learning: unknown field 'batchsize'.*did you mean 'batch_size'"),
        (changed(learning__sync_every=3), r"learning: unknown field 'sync_every'"),
        (changed(seed="3"), "seed: wanted int, got '3'"),
        (changed(seed=True), "seed: wanted int, got True"),
        (changed(seed=3.5), "seed: wanted int"),
        (changed(planning__oracle_parts="edges"), "wanted a list"),
        (changed(planning__oracle_parts=[1]), "wanted str, got 1"),
        (changed(world=None), "world: wanted an object"),
        (changed(replay__strategy="past"), "available: episode, future"),
        ([], "wanted an object"),
    ],
)
def test_what_is_no_configuration_is_refused(data, wanted):
    with pytest.raises(ValueError, match=wanted):
        from_dict(SkipperConfig, data)


def test_missing_fields_take_their_defaults():
    assert from_dict(SkipperConfig, {"seed": 4, "learning": {"batch_size": 7}}) == replace(
        SkipperConfig(), seed=4, learning=replace(SkipperConfig().learning, batch_size=7)
    )


def test_whole_numbers_may_stand_for_floats():
    assert from_dict(SkipperConfig, changed(learning__learning_rate=1)).learning.learning_rate == 1.0


def test_the_hash_covers_what_differs_from_the_defaults():
    config = SkipperConfig(seed=1)
    other = replace(config, network=replace(config.network, hidden=33))
    assert content_hash(config) == content_hash(replace(config))
    assert content_hash(config) != content_hash(other)
    assert content_hash(RunConfig(agent="x")) != content_hash(RunConfig(agent="y"))
    assert content_hash(RunConfig(env="x")) != content_hash(RunConfig(env="y"))
    assert differences(config, other) == ["network.hidden: 256 -> 33"]
    assert differences(config, config) == []


def test_a_field_that_a_later_version_adds_does_not_change_the_hash():
    @dataclass(frozen=True)
    class Block:
        size: int = 3

    @dataclass(frozen=True)
    class LaterBlock:
        size: int = 3
        depth: int = 1

    @dataclass(frozen=True)
    class Now:
        seed: int = 0
        block: Block = field(default_factory=Block)

    @dataclass(frozen=True)
    class Later:
        seed: int = 0
        name: str = ""
        block: LaterBlock = field(default_factory=LaterBlock)

    assert content_hash(Now(seed=2, block=Block(size=4))) == content_hash(Later(seed=2, block=LaterBlock(size=4)))
    assert content_hash(Later(seed=2)) != content_hash(Later(seed=2, block=LaterBlock(depth=2)))


def old_data(**blocks):
    """A configuration as schema 1 wrote it, but for fields that did not change."""
    data = {
        "agent": "skipper-once",
        "world": {"max_steps": 20},
        "planning": {
            "kept": 9,
            "longest": 16.0,
            "doubt": 0.5,
            "caution": 0.1,
            "truth": ["edges"],
            "match_states": True,
        },
        "generator": {"description_bits": 5},
        "learning": {"sync_every": 77, "final_rate": 0.5, "averaging": 0.9, "practice": True, "frozen_acting": True},
        "replay": {"targets": 2, "all_pairs": True},
        "evaluation": {"evaluate_every": 5},
    }
    return data | blocks


def test_renamed_and_moved_fields_migrate():
    config = from_dict(SkipperConfig, migrated(old_data(), 1, SkipperConfig))
    planning, learning = config.planning, config.learning
    assert (planning.max_vertices, config.decision.revisit_penalty, planning.edge_length_penalty) == (9, 0.5, 0.1)
    assert (planning.oracle_parts, planning.match_observations) == (("edges",), True)
    assert (learning.target_update_every, learning.final_learning_rate_fraction, learning.ema_decay) == (77, 0.5, 0.9)
    assert (learning.training_targets, learning.act_with_target_network) == ("random", True)
    moved = migrated(old_data(evaluation={"difficulties": [0.3], "difficulty_spread": 0.1}), 1, SkipperConfig)
    assert moved["world"] == {"max_steps": 20, "difficulties": [0.3], "difficulty_spread": 0.1}
    assert moved["evaluation"] == {}


@pytest.mark.parametrize(
    ("written", "regenerate", "replan"),
    [("once", False, "trigger"), ("trigger", True, "trigger"), ("step", True, "step")],
)
@pytest.mark.parametrize("schema", [1, 2])
def test_when_to_imagine_and_when_to_plan_were_one_setting(written, regenerate, replan, schema):
    data = old_data(planning={"regenerate": written}) if schema == 1 else {"planning": {"regenerate": written}}
    planning = from_dict(SkipperConfig, migrated(data, schema, SkipperConfig)).planning
    assert (planning.regenerate, planning.replan) == (regenerate, replan)


def test_runs_of_schema_2_keep_what_they_did_where_the_defaults_changed():
    for data in ({}, {"planning": {"checkpoints": 4}}):
        planning = from_dict(SkipperConfig, migrated(data, 2, SkipperConfig)).planning
        assert (planning.cluster_current_state, planning.replan_after_exploring) == (True, False)
        assert (planning.regenerate, planning.replan) == (True, "trigger")
    assert migrated({"seed": 3}, 2, RunConfig) == {"seed": 3}
    with pytest.raises(ValueError, match=r"planning.regenerate: wanted bool, got 'never'"):
        from_dict(SkipperConfig, migrated({"planning": {"regenerate": "never"}}, 2, SkipperConfig))


def test_distributions_of_distances_were_a_setting_of_the_networks():
    data = {"network": {"hidden": 32, "distance_distributions": True}}
    assert from_dict(SkipperConfig, migrated(data, 3, SkipperConfig)).planning.distance_distributions
    for kind in (RunConfig, LeapConfig):
        assert migrated(data, 3, kind) == {"network": {"hidden": 32}}


def test_agents_lose_the_blocks_that_were_never_theirs_and_nothing_else():
    kind = EstimatorRunConfig
    config = from_dict(kind, migrated(old_data(agent="modelfree"), 1, kind))
    assert (config.learning.target_update_every, config.world.max_steps) == (77, 20)
    with pytest.raises(ValueError, match="unknown field 'colour'"):
        from_dict(kind, migrated(old_data(colour=1), 1, kind))


def test_todays_configurations_are_not_migrated():
    data = to_dict(SkipperConfig())
    assert migrated(data, SCHEMA, SkipperConfig) is data
