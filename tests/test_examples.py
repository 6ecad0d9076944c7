"""The examples run, in seconds."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from skipper.envs.benchmarks import find_benchmark

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_own_grid(tmp_path, capsys):
    load("own_grid").main(tmp_path / "run")
    assert "success" in capsys.readouterr().out


def test_own_grid_has_the_environment_of_its_page():
    page = (EXAMPLES.parent / "docs" / "your_environment.md").read_text()
    environment = page.split("```python\n")[1].split("```")[0].partition("MOVES")[2]
    assert environment.strip()
    assert environment.rstrip() in (EXAMPLES / "own_grid.py").read_text()


def test_minigrid_fourrooms(tmp_path, capsys):
    load("minigrid_fourrooms").main(tmp_path / "run")
    assert "action: " in capsys.readouterr().out
    assert (tmp_path / "run" / "task.png").stat().st_size > 1_000


def test_plan_and_plot(tmp_path):
    load("plan_and_plot").main(tmp_path / "plan.png")
    assert (tmp_path / "plan.png").stat().st_size > 5_000


def test_compare_with_sb3(tmp_path, capsys):
    example = load("compare_with_sb3")
    example.main(steps=512, episodes=2, out=tmp_path / "ppo.zip")
    printed = capsys.readouterr().out
    assert "optimal    1.00" in printed
    assert "PPO        " in printed
    # The saved model plays as the trained one did.
    policy = example.load_ppo(str(tmp_path / "ppo.zip"))
    observation = find_benchmark(example.BENCHMARK).training_tasks(20).observe(np.arange(50), np.arange(50))
    assert set(policy(observation).tolist()) <= {0, 1, 2, 3}


def test_compare_with_sb3_says_what_it_needs(tmp_path, monkeypatch):
    example = load("compare_with_sb3")
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    with pytest.raises(SystemExit, match="needs Stable-Baselines3"):
        example.main(out=tmp_path / "ppo.zip")
