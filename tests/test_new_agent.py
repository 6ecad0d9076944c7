"""Another agent needs nothing but a registered kind: it trains, saves, resumes, loads and is evaluated."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
import toy_family  # noqa: F401  registers itself
from toy_agent import TableConfig, ToyAgentConfig

import skipper
from skipper.cli import main
from skipper.training.run import Silence, Stop, train
from skipper.training.run_folder import read_config
from skipper.training.settings import configure
from skipper.viewer.gallery import gallery

FILES = ("config.json", "evaluations.jsonl", "weights.safetensors")


def command(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["skipper", *arguments])
    main()


@pytest.mark.parametrize("env", ["lava", "toy"])
def test_it_trains_saves_resumes_and_loads(env, tmp_path):
    config = replace(configure("debug", "table", env), steps=800)
    assert isinstance(config, ToyAgentConfig)
    assert train(config, tmp_path / "whole")
    stop = Stop()

    class StopAt(Silence):
        def progress(self, step: int, metrics: dict[str, float]) -> None:
            stop.asked = step >= 500

    assert not train(config, tmp_path / "parts", StopAt(), stop)
    assert train(config, tmp_path / "parts")
    for name in FILES:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()
    agent = skipper.load(tmp_path / "whole")
    shape = (5, 5, 2) if env == "lava" else (4, 4, 2)
    batch = np.zeros((3, *shape), np.uint8)
    assert agent.act(batch, goal=batch).shape == (3,)
    with pytest.raises(ValueError, match="'table' does not plan"):
        agent.plan(batch, goal=batch)
    with pytest.raises(ValueError, match="'table' has no variants"):
        skipper.load(tmp_path / "whole", agent="skipper-once")
    shown = gallery("run", agent)
    assert len(shown.data["episodes"][0]["steps"][0]["values"]) == (4 if env == "lava" else 3)


def test_it_learns(tmp_path):
    config = replace(configure("debug", "table", "toy"), steps=4_000)
    train(config, tmp_path)
    records = [json.loads(line) for line in (tmp_path / "evaluations.jsonl").read_text().splitlines()]
    assert records[-1]["training"]["success"] == 1.0 > records[0]["training"]["success"]


def test_its_settings_are_options_of_the_commands(tmp_path, monkeypatch, capsys):
    out = str(tmp_path / "run")
    options = ["--agent", "table", "--preset", "debug", "--steps", "400", "--entries", "64", "--step-size", "0.25"]
    command("train", *options, "--out", out, monkeypatch=monkeypatch)
    config = read_config(tmp_path / "run")
    assert isinstance(config, ToyAgentConfig)
    assert config.table == TableConfig(64, 0.25)
    capsys.readouterr()
    command("evaluate", out, "--episodes", "5", "--json", monkeypatch=monkeypatch)
    assert json.loads(capsys.readouterr().out)["sets"]["0.45"]["episodes"] == 5
    with pytest.raises(SystemExit, match="'table' does not plan"):
        command("diagnose", out, monkeypatch=monkeypatch)
