"""The list of items covers the paper, and items share their runs."""

import pytest

from skipper.experiments.define import FIRST_SEED, FRESH_SEED, Scale, works_of
from skipper.experiments.paper import ITEMS, find_item
from skipper.experiments.works import Evaluation, Training, resolve

LABELS = """
fig:50_envs fig:50_envs_app fig:1_envs fig:5_envs fig:25_envs fig:100_envs fig:inf_envs fig:num_envs_all
fig:once_num_envs fig:regen_num_envs fig:modelfree_num_envs fig:leap_num_envs fig:director_num_envs
fig:once_50_envs_suppress fig:50_envs_leap_suppress fig:50_envs_director_wall fig:num_envs_all_director_wall
fig:50_envs_stoch fig:50_envs_once_local fig:50_envs_GT fig:50_envs_non_uniform fig:50_envs_once_no_prune
fig:50_envs_once_ckpts fig:50_envs_once_always_goal tab:once tab:regen fig:proxy_problem fig:example_delusion
fig:support_override fig:rds_director
"""


def names(item, **scale):
    return {work.name for work in works_of(ITEMS[item], Scale(**scale))}


def trainings(item, **scale):
    return [work for work in works_of(ITEMS[item], Scale(**scale)) if isinstance(work, Training)]


def test_every_label_of_the_paper_has_one_item():
    labels = [label for item in ITEMS.values() for label in item.labels]
    assert sorted(labels) == sorted([*LABELS.split(), "Timeout and Pruning Threshold"])


def test_an_unknown_item_is_refused_with_the_nearest_name():
    with pytest.raises(ValueError, match="did you mean 'fig-50-tasks'"):
        find_item("fig-50-task")


@pytest.mark.parametrize("name", ITEMS)
@pytest.mark.parametrize("preset", ["fast", "paper", "debug"])
def test_every_item_resolves_with_every_preset(name, preset):
    works = works_of(ITEMS[name], Scale(preset=preset, seeds=1))
    assert len({work.name for work in works}) == len(works)
    for work in works:
        config = resolve(work if isinstance(work, Training) else work.training)
        first = FRESH_SEED if config.agent.startswith(("skipper", "director")) else FIRST_SEED
        assert (config.seed, config.threads, config.preset) == (first, 1, preset)
        assert config.evaluation.keep_weights


def test_variants_that_share_networks_are_one_training():
    ablations = ("fig-ground-truth", "fig-no-prune", "fig-num-vertices", "fig-always-goal")
    for item in ablations:
        assert {work.name for work in trainings(item)} < names("fig-50-tasks")
    assert len(trainings("fig-50-tasks", seeds=3)) == 3 * 4  # skipper-once plays with the networks of skipper-regen
    assert names("fig-50-tasks") < names("fig-num-tasks")
    assert names("tab-once") | names("tab-regen") == names("fig-num-tasks")


@pytest.mark.parametrize(("preset", "steps"), [("fast", None), ("fast", 800_000), ("paper", None)])
def test_equal_trainings_have_equal_names(preset, steps):
    scale = Scale(preset=preset, steps=steps, seeds=1)
    works = {work for item in ITEMS.values() for work in works_of(item, scale) if isinstance(work, Training)}
    names = {}
    for work in works:
        names.setdefault(resolve(work), set()).add(work.name)
    assert all(len(same) == 1 for same in names.values()), [same for same in names.values() if len(same) > 1]
    if steps:
        assert {work.name for work in trainings("fig-50-tasks", seeds=1)} <= set.union(*names.values())


def test_variants_that_plan_in_training_are_trained_each():
    agents = [work.agent for work in trainings("fig-50-tasks", seeds=1, preset="paper")]
    assert agents == ["skipper-once", "skipper-regen", "modelfree", "leap", "director"]
    vertices = trainings("fig-num-vertices", seeds=1, preset="paper")
    assert sorted(resolve(work).planning.max_vertices for work in vertices) == [4, 6, 8, 12, 16, 24]
    assert len(trainings("fig-ground-truth", seeds=1, preset="paper")) == 1


def test_the_papers_items_have_no_decision_time_aids():
    for name in set(ITEMS) - {"aids"}:
        for work in works_of(ITEMS[name], Scale(seeds=1)):
            if isinstance(work, Evaluation):
                play, config = dict(work.play), resolve(work.training)
                assert play.get("revisit_penalty", config.decision.revisit_penalty) == 0.0
                assert play.get("ensemble", config.decision.ensemble) == 1


def test_seeds_and_steps_of_a_scale():
    works = trainings("fig-leap-suppress", seeds=2, first_seed=40, steps=1234)
    assert [(work.agent, work.seed, resolve(work).steps) for work in works] == [
        ("leap", 40, 1234),
        ("leap-suppress", 40, 1234),
        ("leap", 41, 1234),
        ("leap-suppress", 41, 1234),
    ]
    assert not names("fig-50-tasks", steps=1234) & names("fig-50-tasks")
