"""Presets and variants by name, and configurations of any version with the blocks of their agent and environment."""

from dataclasses import fields, replace

import pytest

from skipper.agents.skipper.config import as_variant
from skipper.config import DecisionConfig
from skipper.envs.lava.config import LavaConfig
from skipper.schema import SCHEMA, differences, to_dict
from skipper.training.settings import configure, parse_config


def test_the_paper_preset_is_the_paper():
    paper = configure("paper", "skipper-once")
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
        configure("papers", "modelfree")


@pytest.mark.parametrize("preset", ["paper", "fast", "debug"])
def test_a_run_holds_the_blocks_of_its_agent_and_its_environment_only(preset):
    blocks = {entry.name for entry in fields(configure(preset, "modelfree"))}
    assert {"planning", "generator"} & blocks == set()
    assert not hasattr(configure(preset, "modelfree").learning, "policy_discount")
    assert not hasattr(configure(preset, "modelfree").replay, "targets")
    assert isinstance(configure(preset, "modelfree").world, LavaConfig)


def test_the_fast_preset_gives_the_baseline_its_own_block():
    plain, baseline = configure("fast", "skipper-regen"), configure("fast", "modelfree")
    assert baseline.learning.target_update_every < plain.learning.target_update_every
    assert baseline.learning.task_discount < plain.learning.task_discount
    assert (baseline.learning.symmetries, baseline.replay.window_episodes) == (True, 8)
    assert (baseline.decision.revisit_penalty, plain.decision.revisit_penalty) == (0.0, 0.5)  # aids are off
    paper = configure("paper", "modelfree")
    assert (paper.replay.window_episodes, paper.learning.task_discount) == (0, 0.99)


def test_the_fast_preset_warms_up_and_clips_updates_and_agents_with_targets_start_from_differences():
    runs = [configure("fast", agent) for agent in ("skipper-regen", "leap", "modelfree")]
    runs.append(configure("paper", "skipper-regen"))
    names = ("warmup_updates", "learning_rate", "update_clip")
    settings = [(run.network.contrast_start, *(getattr(run.learning, name) for name in names)) for run in runs]
    targets, modelfree, paper = (True, 500, 2e-3, 1.0), (False, 500, 5e-4, 1.0), (False, 0, 2.5e-4, 0.0)
    assert settings == [targets, targets, modelfree, paper]


def test_where_moves_slip_the_fast_preset_does_not_trust_episodes():
    slipping = configure("fast", "skipper-regen", world=LavaConfig(slip=0.1))
    plain = configure("fast", "skipper-regen")
    assert (plain.learning.hindsight_bound, plain.learning.target_update_every) == (True, 4_800)
    assert (slipping.learning.hindsight_bound, slipping.learning.target_update_every) == (False, 2_400)
    assert (plain.learning.learning_rate, slipping.learning.learning_rate) == (2e-3, 1e-3)
    assert (plain.learning.update_clip, slipping.learning.update_clip) == (1.0, 0.0)
    assert (plain.learning.multistep, slipping.learning.multistep) == (False, True)
    assert (plain.planning.distance_distributions, slipping.planning.distance_distributions) == (False, True)
    assert (plain.replay.independent_targets, slipping.replay.independent_targets) == (False, True)
    assert (plain.decision.revisit_penalty, slipping.decision.revisit_penalty) == (0.5, 0.0)
    same = {name: getattr(plain, name) for name in ("world", "learning", "replay", "planning", "decision")}
    assert replace(slipping, **same) == plain


@pytest.mark.parametrize("agent", ["skipper-once", "skipper-goal"])
def test_all_variants_learn_alike_where_moves_slip(agent):
    world = LavaConfig(slip=0.1)
    regen, other = (configure("fast", name, world=world) for name in ("skipper-regen", agent))
    blocks = ("learning", "network", "replay", "decision")
    assert [getattr(regen, name) for name in blocks] == [getattr(other, name) for name in blocks]


def test_larger_worlds_have_more_codes_more_vertices_and_longer_plans():
    def scaled(side: int, preset: str = "fast", slip: float = 0.0) -> tuple[int, int, int]:
        config = configure(preset, "skipper-regen", world=LavaConfig(width=side, height=side, slip=slip))
        return config.generator.description_bits, config.planning.checkpoints, config.planning.sweeps

    assert [scaled(side) for side in (8, 12, 16, 24)] == [(6, 62, 16), (6, 62, 16), (7, 110, 21), (8, 124, 32)]
    assert scaled(16, slip=0.1) == scaled(16)
    assert scaled(24, "paper") == scaled(12, "paper")


@pytest.mark.parametrize("preset", ["paper", "debug"])
def test_other_presets_do_not_look_at_slips(preset):
    plain, slipping = configure(preset, "skipper-regen"), configure(preset, "skipper-regen", world=LavaConfig(slip=0.1))
    assert replace(slipping, world=plain.world) == plain


def test_variants_play_with_each_others_networks():
    once, regen = configure("fast", "skipper-once"), configure("fast", "skipper-regen")
    assert as_variant(regen, "skipper-once") == once
    assert as_variant(once, "skipper-regen") == regen
    assert as_variant(once, "skipper-goal").planning == replace(regen.planning, always_goal=True)
    assert differences(regen, once) == ["agent: skipper-regen -> skipper-once", "planning.regenerate: True -> False"]
    for replan in ("trigger", "step"):  # which is the run's, whatever its preset
        run = replace(once, planning=replace(once.planning, replan=replan))
        assert as_variant(run, "skipper-regen").planning == replace(regen.planning, replan=replan)
    careful = replace(once, decision=DecisionConfig(revisit_penalty=0.3))
    assert as_variant(careful, "skipper-regen").decision.revisit_penalty == 0.3
    for config, agent in ((regen, "modelfree"), (configure("fast", "modelfree"), "skipper-once")):
        with pytest.raises(ValueError, match=r"only variants of Skipper.*not 'modelfree'"):
            as_variant(config, agent)


@pytest.mark.parametrize("agent", ["modelfree", "skipper-goal"])
def test_configurations_are_read_with_the_types_of_their_agent_and_environment(agent):
    config = configure("debug", agent)
    assert parse_config(to_dict(config), SCHEMA, "here") == config


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"agent": "skipper-onec"}, "unknown agent 'skipper-onec'.*did you mean 'skipper-once'"),
        ({"agent": "optimal"}, "does not learn"),
        ({"agent": 3}, r"here.agent: wanted str, got 3"),
        ({"env": "lawa"}, "unknown environment 'lawa'"),
        ({"world": {"slipp": 0.1}}, "unknown field 'slipp'.*did you mean 'slip'"),
        ({"world": {"slip": -1.0}}, "possible: 0 to 1"),
    ],
)
def test_what_no_agent_or_environment_has_is_refused(changes, wanted):
    with pytest.raises(ValueError, match=wanted):
        parse_config(to_dict(configure("debug", "modelfree")) | changes, SCHEMA, "here")
