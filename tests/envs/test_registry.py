import pytest
from toy_family import TOY

from skipper.envs.registry import DEFAULT_FAMILY, FAMILIES, find_family, register_family


def test_families_are_found_by_name():
    assert find_family(DEFAULT_FAMILY).name == "lava"
    with pytest.raises(ValueError, match=r"unknown environment 'lavva'; available: .*did you mean 'lava'"):
        find_family("lavva")


def test_a_family_is_loaded_when_it_is_needed(monkeypatch):
    monkeypatch.setattr("skipper.envs.registry.FAMILIES", dict(FAMILIES))
    loaded = []
    register_family("other", lambda: loaded.append(1) or find_family("lava"))
    assert loaded == []
    assert find_family("other").actions == ("east", "south", "west", "north")
    assert loaded == [1]


@pytest.mark.parametrize("family", [find_family("lava"), TOY], ids=lambda family: family.name)
def test_splits_have_other_tasks(family):
    world, seen = family.world("paper"), {}
    name = family.evaluation_names(world)[0]
    for split in ("evaluation", "tuning"):
        tasks = family.evaluation_tasks(world, name, 20, 0, split)
        seen[split], _ = family.vector_env(20, tasks, world, one_each=True).reset(seed=0)
    drawn, tuned = ({task.tobytes() for task in seen[split]} for split in seen)
    assert len(drawn & tuned) < (1 if family.name == "lava" else len(drawn))  # only content can keep them disjoint
    again = family.evaluation_tasks(world, name, 20, 0)
    assert (family.vector_env(20, again, world, one_each=True).reset(seed=0)[0] == seen["evaluation"]).all()
