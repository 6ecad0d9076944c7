"""``skipper environments`` lists benchmarks, families, and what each environment of MiniGrid offers."""

import json
import sys

import pytest

from skipper.cli import main


def run(monkeypatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["skipper", "environments", *arguments])
    main()


def test_a_pattern_chooses_environments(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    run(monkeypatch, "MiniGrid-Empty-5x5-v?")
    lines = capsys.readouterr().out.splitlines()
    assert "skipper/LavaWorld-50-v0" in "".join(lines)
    assert sum("MiniGrid-Empty-5x5-v0" in line for line in lines) == 1
    assert max(map(len, lines)) <= 80
    run(monkeypatch, "MiniGrid-Empty-5x5-v0", "--json")
    assert json.loads(capsys.readouterr().out)["env_id"] == "MiniGrid-Empty-5x5-v0"


def test_what_nothing_matches_and_what_is_not_installed_are_told(monkeypatch, capsys):
    with pytest.raises(SystemExit, match="no environment of MiniGrid matches 'lavva'"):
        run(monkeypatch, "lavva")
    monkeypatch.setattr("skipper.envs.registry.find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"MiniGrid is not installed; install it with: pip install"):
        run(monkeypatch)
    assert "skipper/LavaWorld-50-v0" in capsys.readouterr().out
