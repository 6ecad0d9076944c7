from pathlib import Path
from types import SimpleNamespace

import pytest

from skipper.commands.pictures import PROBABILITIES, draw_pictures, find_delusion
from skipper.experiments.works import Training

STATES = {"states": [0, 2, 5], "distance": [[0, 1, -1], [1, 0, -1], [-1, -1, 0]]}
HONEST = {"cells": [0, 2], "states": [0, 2], "route": [0, 1]}
DELUSIONAL = {"cells": [0, 5], "states": [0, 5], "route": [0, 1]}


def test_the_first_plan_over_an_impossible_edge_is_found():
    steps = [{"plan": 0}, {"plan": 0}, {"plan": 1}]
    good = {"truth": STATES, "plans": [HONEST], "steps": [{"plan": 0}]}
    bad = {"truth": STATES, "plans": [HONEST, DELUSIONAL], "steps": steps}
    assert find_delusion(SimpleNamespace(data={"episodes": [good, bad]})) == (1, 2)
    assert find_delusion(SimpleNamespace(data={"episodes": [good]})) is None


def test_pictures_of_a_trained_agent(monkeypatch, tmp_path):
    monkeypatch.setattr(Training, "folder", lambda training, root: root.parents[0] / "run")
    monkeypatch.setattr("skipper.commands.pictures.TASKS", (0,))
    pretrained = Path(__file__).parents[2] / "skipper" / "pretrained" / "skipper-regen-50"
    (tmp_path / "run").symlink_to(pretrained)
    drawn = draw_pictures([Training("skipper-regen", "fast", 33)], tmp_path / "out")
    names = [path.name for path in drawn]
    assert names[:3] == ["pictures-support-override.png", "pictures-support-override.svg", "pictures-proxy-problem.png"]
    assert all(path.stat().st_size > 5_000 for path in drawn)
    assert PROBABILITIES.sum() == pytest.approx(1.0)
