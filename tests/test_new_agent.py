"""Another agent needs nothing but a registered kind: it trains, saves, resumes, loads and is evaluated."""

import importlib.util
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import toy_family  # noqa: F401  registers itself
from toy_agent import TableConfig, ToyAgentConfig

import skipper
from skipper.cli import main
from skipper.config import RunConfig
from skipper.training.run import Silence, Stop, train
from skipper.training.run_folder import read_config
from skipper.training.settings import configure
from skipper.viewer.gallery import gallery

FILES = ("config.json", "evaluations.jsonl", "weights.safetensors")


def command(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["skipper", *arguments])
    main()


def check_exact_resume(config: RunConfig, folder: Path) -> None:
    """A run that is stopped in the middle and continued leaves the same files as one that is not, in "whole"."""
    assert train(config, folder / "whole")
    stop = Stop()

    class StopAt(Silence):
        def progress(self, step: int, metrics: dict[str, float]) -> None:
            stop.asked = step >= 500

    assert not train(config, folder / "parts", StopAt(), stop)
    assert train(config, folder / "parts")
    for name in FILES:
        assert (folder / "whole" / name).read_bytes() == (folder / "parts" / name).read_bytes()


@pytest.mark.parametrize("env", ["lava", "toy"])
def test_it_trains_saves_resumes_and_loads(env, tmp_path):
    config = replace(configure("debug", "table", env), steps=800)
    assert isinstance(config, ToyAgentConfig)
    check_exact_resume(config, tmp_path)
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


def page_code() -> str:
    """The file that the page "Add an agent" builds, block by block."""
    page = (Path(__file__).parents[1] / "docs" / "add_an_agent.md").read_text()
    return "\n\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))


@pytest.fixture(scope="module")
def my_agent(tmp_path_factory):
    """The page's file as a module; its agent has another name here, since the one above is called table, too."""
    path = tmp_path_factory.mktemp("page") / "my_agent.py"
    path.write_text(
        page_code().replace('"table", AgentKind', '"page", AgentKind').replace('"debug", "table"', '"debug", "page"')
    )
    spec = importlib.util.spec_from_file_location("my_agent", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["my_agent"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["my_agent"]


def test_the_agent_of_the_page_learns_its_training_tasks(my_agent, tmp_path):
    assert my_agent.example(tmp_path / "short", steps=200) < my_agent.example(tmp_path / "long", steps=30_000) == 1.0


def test_the_agent_of_the_page_resumes_exactly_and_is_shown(my_agent, tmp_path):
    config = replace(configure("debug", "page"), steps=800)
    check_exact_resume(config, tmp_path)
    assert gallery("run", skipper.load(tmp_path / "whole")).data["episodes"][0]["steps"]


def test_the_commands_of_the_page_work(tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "add_an_agent.md").read_text()
    (tmp_path / "my_agent.py").write_text(page_code())
    commands = re.findall(r"^python (my_agent.py .*)$", page, re.MULTILINE)
    assert len(commands) == 3
    for line in commands:
        done = subprocess.run(
            [sys.executable, *line.split()], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "plan.html").stat().st_size > 30_000
