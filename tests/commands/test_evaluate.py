"""What is played, on which tasks, and what is said about it."""

import hashlib
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


def test_comparing_with_truth_changes_no_result(monkeypatch, capsys):
    few = [REGEN, "--episodes", "20", "--difficulties", "0.55", "--checkpoints", "5", "--json"]
    alone, compared = (
        json.loads(printed("evaluate", *few, *more, monkeypatch=monkeypatch, capsys=capsys))["sets"]
        for more in ([], ["--truth"])
    )
    assert alone == compared


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


POLICIES = """
from pathlib import Path

import numpy as np
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.oracle import LavaOracle


def optimal(observation):
    return LavaOracle(LavaConfig()).action_values(observation).argmax(-1)


class Counting:
    \"\"\"A policy with memory: it alternates, and begins anew for every set.\"\"\"

    def __init__(self):
        self.step = 0

    def __call__(self, observation):
        self.step += 1
        assert (observation[..., 0] == 10).sum() == len(observation), "one agent each"
        return np.full(len(observation), 1 if self.step % 2 else 3, np.int32)


def load(path):
    action = int(Path(path).read_text())
    return lambda observation: np.full(len(observation), action)
"""


@pytest.fixture
def policies(tmp_path, monkeypatch):
    """A folder with a module of policies; its name is new for every test, since modules are imported once."""
    module = f"policies_{tmp_path.name}"
    (tmp_path / f"{module}.py").write_text(POLICIES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return module


def test_another_librarys_policy_is_scored_like_an_agent(policies, monkeypatch, capsys):
    few = ["--episodes", "20", "--seed", "20", "--json"]
    arguments = ["--policy", f"{policies}:optimal", "--benchmark", "skipper/LavaWorld-5-v0"]
    more = ["--training", "--training-seed", "21"]
    found = json.loads(printed("evaluate", *arguments, *more, *few, monkeypatch=monkeypatch, capsys=capsys))
    baseline = json.loads(printed("evaluate", "--agent", "optimal", *few, monkeypatch=monkeypatch, capsys=capsys))
    assert found["sets"].pop("training")["outcomes"] == "sssss"
    assert found["sets"] == baseline["sets"]
    about = baseline["about"] | {"agent": f"{policies}:optimal", "benchmark": "skipper/LavaWorld-5-v0"}
    assert found["about"] == about | {"tasks": 5, "seed": 21}


def test_a_policy_with_memory_begins_anew_for_every_set(policies, monkeypatch, capsys):
    arguments = ["--policy", f"{policies}:Counting", "--episodes", "7", "--seed", "20"]
    one = json.loads(printed("evaluate", *arguments, "--json", monkeypatch=monkeypatch, capsys=capsys))
    first = [*arguments, "--difficulties", "0.55", "--json"]
    alone = json.loads(printed("evaluate", *first, monkeypatch=monkeypatch, capsys=capsys))
    assert one["sets"]["0.55"] == alone["sets"]["0.55"]
    assert one["sets"]["0.55"]["success"] == 0.0
    assert "timeouts" in printed("evaluate", *arguments, monkeypatch=monkeypatch, capsys=capsys)


def test_policies_with_weights_are_told_apart(policies, monkeypatch, capsys, tmp_path):
    files = []
    for seed, action in enumerate("012"):
        weights, out = tmp_path / f"{seed}.txt", tmp_path / f"{seed}.json"
        weights.write_text(action)
        arguments = ["--policy", f"{policies}:load", "--weights", str(weights), "--episodes", "3", "--seed", "20"]
        printed("evaluate", *arguments, "--json", "--out", str(out), monkeypatch=monkeypatch, capsys=capsys)
        files.append(str(out))
        assert json.loads(out.read_text())["about"]["weights"] == hashlib.sha256(action.encode()).hexdigest()[:16]
    sides = ["--better", *files[:2], "--worse", files[2]]
    assert "one network" in printed("compare", *sides, monkeypatch=monkeypatch, capsys=capsys)
    monkeypatch.setattr(sys, "argv", ["skipper", "compare", "--better", *files, "--worse", files[2]])
    with pytest.raises(SystemExit, match="networks are on both sides"):
        main()


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--policy", "MODULE:optimal", "--agent", "random"], "--policy stands alone"),
        (["--policy", "MODULE:optimal", REGEN], "--policy stands alone"),
        (["--agent", "random", "--weights", "x"], "--weights needs --policy"),
        (["--agent", "random", "--benchmark", "skipper/LavaWorld-50-v0"], "--benchmark needs --policy"),
        (["--policy", "MODULE:optimal", "--training"], "--training needs --training-seed"),
        (["--agent", "optimal", "--training"], "--training needs the folder of a run, or --policy"),
        (["--policy", "MODULE:optimal", "--benchmark", "skipper/LavaWorld-51-v0"], "unknown benchmark"),
        (["--policy", "MODULE:optimal", "--ensemble", "8"], "need the folder of a run"),
        (["--policy", "MODULE:optimal", "--benchmark", "skipper/LavaWorld-50-v0", "--slip", "0.1"], "its own world"),
        (["--policy", "MODULE:load", "--weights", "nowhere.zip"], "nowhere.zip"),
        (["--policy", "MODULE:optimum"], "did you mean 'optimal'"),
    ],
)
def test_what_a_policy_cannot_be_asked_for_is_refused(options, wanted, policies, monkeypatch):
    given = [option.replace("MODULE", policies) for option in options]
    monkeypatch.setattr(sys, "argv", ["skipper", "evaluate", *given, "--episodes", "2"])
    with pytest.raises(SystemExit, match=wanted):
        main()
