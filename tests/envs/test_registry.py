import pytest

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
