"""What is played, on which tasks, and what is said about it."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from skipper.cli import main
from skipper.envs.lava.family import LAVA
from skipper.training.state_file import read_state, write_state

RUNS = Path(__file__).parents[2] / "skipper" / "pretrained"
REGEN = str(RUNS / "skipper-regen-50")
EARLY = Path(__file__).parents[1] / "data" / "schema1" / "modelfree"
NOTE = "seeds 0 to 19 are for tuning; report from 20 up"


def printed(*arguments: str, monkeypatch, capsys) -> str:
    monkeypatch.setattr(sys, "argv", ["skipper", *arguments])
    main()
    return capsys.readouterr().out


@pytest.mark.parametrize("command", ["evaluate", "ablate", "diagnose"])
@pytest.mark.parametrize(("options", "split"), [([], "evaluation"), (["--split", "tuning"], "tuning")])
def test_commands_play_the_split_that_they_are_asked_for(command, options, split, monkeypatch):
    def recorded(world, name, count, seed, split="evaluation"):
        raise ValueError(f"tasks of {split}")

    monkeypatch.setattr(LAVA, "evaluation_tasks", recorded)
    monkeypatch.setattr(sys, "argv", ["skipper", command, REGEN, *options])
    with pytest.raises(SystemExit, match=f"tasks of {split}"):
        main()


def test_an_unknown_split_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["skipper", "evaluate", REGEN, "--split", "train"])
    with pytest.raises(SystemExit):
        main()
    assert "evaluation" in capsys.readouterr().err


def test_the_object_of_a_run_says_which_networks_played_what(monkeypatch, capsys):
    few = ["--episodes", "3", "--difficulties", "0.25", "--seed", "20", "--training", "--json"]
    found = {}
    for name, options in {
        "regen": [],
        "once": ["--agent", "skipper-once", "--ensemble", "2", "--replan", "trigger", "--revisit-penalty", "0"],
    }.items():
        arguments = ["evaluate", REGEN, *options, *few]
        found[name] = json.loads(printed(*arguments, monkeypatch=monkeypatch, capsys=capsys))
    weights = found["regen"]["about"].pop("weights")
    settings = found["regen"]["about"].pop("settings")
    assert all(re.fullmatch("[0-9a-f]{16}", digest) for digest in (weights, settings))
    assert found["regen"]["about"].pop("world")["difficulties"] == [0.25]
    assert found["regen"]["about"] == {
        "agent": "skipper-regen",
        "env": "lava",
        "seed": 33,
        "tasks": 50,
        "steps": 800_000,
        "revisit_penalty": 0.5,
        "ensemble": 1,
        "replan": "step",
        "split": "evaluation",
        "evaluation_seed": 20,
        "episodes": 3,
    }
    about = found["once"]["about"]
    assert (about["agent"], about["weights"], about["ensemble"]) == ("skipper-once", weights, 2)
    assert (about["replan"], about["revisit_penalty"]) == ("trigger", 0.0)
    for row in found["regen"]["sets"].values():
        rates = {letter: row["outcomes"].count(letter) / len(row["outcomes"]) for letter in "sdt"}
        assert (row["success"], row["deaths"], row["timeouts"]) == tuple(rates.values())
        assert row["episodes"] == len(row["outcomes"]) == 3
    assert list(found["once"]["sets"]) == ["0.25", "training"]


@pytest.mark.parametrize(
    ("options", "noted"),
    [
        (["--agent", "random", "--seed", "19"], True),
        (["--agent", "random", "--seed", "20"], False),
        (["--agent", "random", "--seed", "3", "--split", "tuning"], False),
        ([str(RUNS / "modelfree-50"), "--seed", "20"], False),  # trained with seed 33
        ([str(EARLY), "--seed", "20"], True),  # trained with seed 0
    ],
)
def test_the_table_says_which_seeds_are_for_tuning(options, noted, monkeypatch, capsys):
    arguments = ["evaluate", *options, "--episodes", "2", "--difficulties", "0.25"]
    assert (NOTE in printed(*arguments, monkeypatch=monkeypatch, capsys=capsys)) == noted
    assert NOTE not in printed(*arguments, "--json", monkeypatch=monkeypatch, capsys=capsys)


def kept_run(tmp_path: Path, *steps: int) -> Path:
    """A copy of a trained run that also keeps its weights, under the steps of several evaluations."""
    run = tmp_path / "run"
    shutil.copytree(REGEN, run)
    entry = read_state(run / "weights.safetensors", "weights")
    (run / "weights").mkdir()
    for step in steps:
        write_state(run / "weights" / f"step-{step:012d}.safetensors", "weights", entry | {"step": step})
    return run


def test_a_curve_plays_with_all_kept_weights_and_compares_with_truth(monkeypatch, capsys, tmp_path):
    run, file = kept_run(tmp_path, 100, 600_000), tmp_path / "new" / "once.json"
    few = ["--episodes", "3", "--difficulties", "0.25", "--curve", "2", "--truth", "--json", "--out", str(file)]
    assert printed("evaluate", str(run), *few, monkeypatch=monkeypatch, capsys=capsys) == ""
    found = json.loads(file.read_text())
    assert [record["step"] for record in found["curve"]] == [100, 600_000]
    assert {record["0.25"]["episodes"] for record in found["curve"]} == {2}
    assert found["sets"]["0.25"]["episodes"] == 3
    for part in (found, found["curve"][0]):
        assert {"edges", "walks", "plans", "generator"} == set(part["truth"]["0.25"])


def test_settings_of_planning_change_the_plans_and_are_recorded(monkeypatch, capsys):
    few = ["--episodes", "20", "--difficulties", "0.55", "--seed", "20", "--json", "--revisit-penalty", "0"]
    plans = {
        "oracle": ["--oracle-parts", "edges", "policy"],
        "few": ["--checkpoints", "1", "--max-vertices", "2", "--prune-vertices", "True"],
    }
    found = {
        name: json.loads(printed("evaluate", REGEN, *few, *options, monkeypatch=monkeypatch, capsys=capsys))
        for name, options in plans.items()
    }
    assert found["oracle"]["sets"]["0.55"]["success"] == 1.0
    assert found["oracle"]["about"]["planning"] == {"oracle_parts": ["edges", "policy"]}
    assert found["few"]["about"]["planning"] == {"checkpoints": 1, "max_vertices": 2, "prune_vertices": True}
    assert found["few"]["sets"]["0.55"]["success"] < 1.0


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ([REGEN, "--curve", "2"], "--curve, --truth and --out need --json"),
        (["--agent", "optimal", "--truth", "--json"], "--curve and --truth need the folder of a run"),
        ([str(RUNS / "modelfree-50"), "--truth", "--json"], "--truth: 'modelfree' does not plan"),
    ],
)
def test_what_cannot_be_measured_is_refused(options, wanted, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["skipper", "evaluate", *options, "--episodes", "2"])
    with pytest.raises(SystemExit, match=wanted):
        main()
