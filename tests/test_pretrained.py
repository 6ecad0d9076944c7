"""The agents that come with the project can be loaded and act."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import skipper
from skipper.analysis.oracle_substitution import load_with_oracle
from skipper.cli import main
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.tasks import evaluation_tasks
from skipper.training.evaluate import rollout
from skipper.training.pretrained import PRETRAINED, find_run, pretrained_names, read_card
from skipper.training.recorder import EVALUATIONS

ROOT = Path(__file__).parents[1]

FOLDERS = sorted(path.name for path in PRETRAINED.iterdir())


def test_there_are_agents():
    assert "skipper-regen-50" in FOLDERS
    assert pretrained_names() == FOLDERS


def test_a_folder_that_exists_wins_over_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_run("modelfree-50") == PRETRAINED / "modelfree-50"
    Path("modelfree-50").mkdir()
    assert find_run("modelfree-50") == Path("modelfree-50")
    with pytest.raises(ValueError, match=r"is not a run folder, nor a pretrained agent \(director-walls-1, leap"):
        skipper.load("skipper")
    with pytest.raises(ValueError, match=r"skipper-once-50, skipper-regen-50\); did you mean 'skipper-once-50'\?"):
        skipper.load("skiper-once-50")
    with pytest.raises(ValueError, match=r"modelfree-50 is not a run folder: it has no config\.json"):
        skipper.load("modelfree-50")


def test_a_run_beside_the_misspelt_one_is_suggested(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(PRETRAINED / "modelfree-50", "runs/first")
    with pytest.raises(ValueError, match=r"runs/frist is not a run folder.*; did you mean 'runs/first'"):
        find_run("runs/frist")
    with pytest.raises(ValueError, match=r"weights\.safetensors is a file; name the folder of a run"):
        find_run("runs/first/weights.safetensors")


def test_learning_curves_are_those_of_the_reported_runs(tmp_path, monkeypatch):
    for name in FOLDERS:
        facts, curve = read_card(PRETRAINED / name).facts, PRETRAINED / name / EVALUATIONS
        assert curve.exists() == ("raw curves" in facts)
        if curve.exists():
            assert curve.read_bytes() == (ROOT / facts["raw curves"].strip("`")).read_bytes()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["skipper", "plot", "skipper-regen-50", "modelfree-50", "--out", "new/curves.png"])
    main()
    assert Path("new/curves.png").stat().st_size > 10_000
    monkeypatch.setattr(sys, "argv", ["skipper", "plot", "skipper-once-50"])
    with pytest.raises(SystemExit, match=r"skipper-once-50 has no evaluations\.jsonl, where `skipper train` records"):
        main()


def test_plots_tell_runs_of_one_name_apart_and_refuse_other_sets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drawn = []
    monkeypatch.setattr("skipper.analysis.plots.draw_learning_curves", lambda curves, *_: drawn.append(list(curves)))
    for folder in ("a/run", "b/run"):
        shutil.copytree(PRETRAINED / "modelfree-50", folder)
    monkeypatch.setattr(sys, "argv", ["skipper", "plot", "a/run", "b/run"])
    main()
    assert drawn == [["a/run", "b/run"]]
    Path("b/run", EVALUATIONS).write_text('{"step": 0, "all": {"success": 0.5, "low": 0.4, "high": 0.6}}\n')
    with pytest.raises(SystemExit, match="different sets of tasks"):
        main()


def test_the_list_shows_what_was_measured(capsys, monkeypatch):
    reported = json.loads((ROOT / "results" / "skipper" / "shipped" / "regen-penalty.json").read_text())["sets"]
    monkeypatch.setattr(sys, "argv", ["skipper", "pretrained", "--json"])
    main()
    listed = json.loads(capsys.readouterr().out)
    assert sorted(listed) == FOLDERS
    success = listed["skipper-regen-50"]["success"]
    assert list(success) == ["0.25", "0.35", "0.45", "0.55", "mean"]
    assert success["0.55"] == pytest.approx(reported["0.55"]["success"], abs=6e-4)
    assert success["mean"] == pytest.approx(np.mean([success[name] for name in list(success)[:-1]]), abs=1e-3)
    assert "8.1 minutes" in listed["skipper-regen-50"]["facts"]["time"]


def test_skipper_once_loses_no_vertices_on_its_way():
    agent = load_with_oracle(PRETRAINED / "skipper-regen-50")
    tasks = evaluation_tasks(LavaConfig(), 0.35, 10, seed=0)
    player, begun, vertices = agent.with_planning(0, regenerate=False, replan="trigger"), np.zeros(10, bool), ([], [])
    for moment in rollout(player, agent.family, tasks, seed=0):
        if moment.decision.plan is not None:
            planned, kept = moment.decision.planned, moment.decision.plan.kept.sum(-1)
            for which in (False, True):  # first plans, and later ones
                vertices[which].extend(kept[begun[planned] == which])
            begun |= planned
    assert len(vertices[False]) == 10
    assert np.mean(vertices[False]) > 55
    assert np.mean(vertices[True]) > 55


@pytest.mark.parametrize("name", FOLDERS)
def test_a_pretrained_agent_acts_and_has_a_card(name):
    agent = skipper.load(PRETRAINED / name)
    assert name.startswith(agent.config.agent)
    tasks = evaluation_tasks(agent.config.world, 0.35, 8, seed=0)
    seen = tasks.observe(np.arange(8), tasks.table.start)
    action = agent.act(seen)
    assert action.shape == (8,)
    assert ((action >= 0) & (action < 4)).all()
    card = (PRETRAINED / name / "README.md").read_text()
    assert f"skipper evaluate {name} --episodes 400" in card
