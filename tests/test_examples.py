"""The examples run, in seconds."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

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


def test_compare_with_sb3():
    """With a stub in place of the library's policy, and without the library."""
    example = load("compare_with_sb3")

    class Stub:
        def predict(self, flat, deterministic):
            assert flat.shape[1:] == example.make_env().observation_space.shape
            return np.zeros(len(flat), np.int64), None

    results = example.compare({"stub": example.LibraryAgent(Stub())})
    assert 0.0 <= results["stub"] <= 1.0
    if importlib.util.find_spec("stable_baselines3") is None:
        with pytest.raises(SystemExit, match="needs Stable-Baselines3"):
            example.main()
