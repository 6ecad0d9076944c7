import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from skipper.analysis.oracle_substitution import REPLACED
from skipper.cli import base_config, main
from skipper.envs.registry import find_family
from skipper.experiments.ablate import PLANNING
from skipper.schema import to_dict
from skipper.training.run_folder import read_config

PRETRAINED = Path(__file__).parents[1] / "skipper" / "pretrained" / "skipper-regen-50"


def skipper(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["skipper", *arguments])
    main()


def test_evaluation_as_json(monkeypatch, capsys):
    skipper("evaluate", "--agent", "optimal", "--episodes", "50", "--json", monkeypatch=monkeypatch)
    result = json.loads(capsys.readouterr().out)
    assert result["about"].pop("world") == to_dict(find_family("lava").world("paper"))
    assert result["about"] == {
        "agent": "optimal",
        "env": "lava",
        "split": "evaluation",
        "evaluation_seed": 0,
        "episodes": 50,
    }
    assert list(result["sets"]) == ["0.25", "0.35", "0.45", "0.55"]
    for row in result["sets"].values():
        assert set(row) == {"success", "low", "high", "episodes", "length", "deaths", "timeouts", "outcomes"}
        assert (row["success"], row["episodes"], row["deaths"], row["timeouts"]) == (1.0, 50, 0.0, 0.0)
        assert row["outcomes"] == 50 * "s"
        assert 0.9 < row["low"] < row["high"] == 1.0


def test_evaluation_as_a_table(monkeypatch, capsys):
    options = ["--agent", "random", "--episodes", "20", "--difficulties", "0.3", "0.5", "--size", "6", "5"]
    skipper("evaluate", *options, "--dynamics", "walls", "--slip", "0.1", monkeypatch=monkeypatch)
    printed = capsys.readouterr().out
    assert re.search(r"random\W+0\.3\W+0\.\d{3}\W+0\.\d{3} - [01]\.\d{3}", printed)
    assert re.search(r"random\W+0\.5\W+0\.\d{3}", printed)


def test_every_option_reaches_the_world(monkeypatch, capsys):
    def run(*options: str) -> dict[str, float]:
        fixed = ["--agent", "optimal", "--episodes", "200", "--difficulties", "0.4", "--json"]
        skipper("evaluate", *fixed, *options, monkeypatch=monkeypatch)
        return json.loads(capsys.readouterr().out)["sets"]["0.4"]

    base = run()
    assert run("--seed", "1")["length"] != base["length"]
    assert run("--split", "tuning")["length"] != base["length"]
    assert run("--size", "8")["length"] < base["length"] - 3
    assert run("--max-steps", "14")["timeouts"] > 0.3
    assert run("--slip", "0.2")["deaths"] > 0.05
    assert run("--slip", "0.2", "--dynamics", "walls")["deaths"] == 0
    assert run("--spread", "0.0")["length"] != base["length"]


def test_the_demo_trains_compares_and_draws(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("skipper.experiments.demo.STEPS", 128)
    options = ["--out", str(tmp_path / "new"), "--episodes", "10", "--trained", "None"]
    for _ in range(2):  # the second demo replaces the first
        skipper("demo", *options, monkeypatch=monkeypatch)
    printed = capsys.readouterr().out
    for name in ("random", "optimal", "just now"):
        assert name in printed
    assert "pretrained" not in printed
    for name in ("curve.png", "plan.png", "tasks.png"):
        assert (tmp_path / "new" / name).stat().st_size > 10_000
    assert "see run think" in printed
    assert (tmp_path / "new" / "watch.html").stat().st_size > 50_000


def test_watching_writes_a_page_and_its_data(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("COLUMNS", "200")
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    run = "modelfree-50"
    page, data, film = (tmp_path / "out" / name for name in ("page.html", "data.json", "film.gif"))
    files = ["--out", str(page), "--json", str(data), "--gif", str(film), "--png", "0"]
    skipper("watch", run, "--task", "3", "1", "--difficulty", "0.35", *files, "--browser", monkeypatch=monkeypatch)
    episodes = json.loads(data.read_text())["episodes"]
    printed = capsys.readouterr().out
    for episode, number in zip(episodes, (3, 1), strict=True):
        assert f"task {number}: {episode['outcome']} after {len(episode['steps'])} steps" in printed
    assert "<!doctype html>" in page.read_text()
    assert opened == [page.as_uri()]
    assert film.read_bytes().startswith(b"GIF")
    assert page.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_the_evaluation_set_to_watch_has_two_names_and_a_default(monkeypatch, tmp_path):
    run = "modelfree-50"
    shown = []
    for option in (["--difficulty", "0.45"], ["--set", "0.45"], [], ["--set", "0.3"]):
        data = tmp_path / "data.json"
        skipper("watch", run, *option, "--out", str(tmp_path / "p.html"), "--json", str(data), monkeypatch=monkeypatch)
        shown.append(json.loads(data.read_text()))
    assert shown[0] == shown[1] == shown[2] != shown[3]
    assert shown[0]["about"]["difficulty"] == "0.45"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--task", "-1"], "--task wants numbers from 0 to 9999, got -1"),
        (["--task", "3", "999999999"], "--task wants numbers from 0 to 9999, got 3 999999999"),
        (["--each", "0"], "--each wants at least 1, got 0"),
        (["--png", "99"], "--png wants a step of the episode, 0 to "),
        (["--set", "hard"], "wanted a difficulty, such as 0.45, got 'hard'"),
        (["--agent", "skipper-once"], "only variants of one agent share their networks"),
    ],
)
def test_mistakes_in_watching_are_reported(options, complaint, monkeypatch, tmp_path):
    run = "modelfree-50"
    with pytest.raises(SystemExit, match=complaint):
        skipper("watch", run, *options, "--out", str(tmp_path / "page.html"), monkeypatch=monkeypatch)


@pytest.mark.parametrize(
    ("options", "size", "max_steps", "checkpoints"),
    [
        ([], (12, 12), 64, 62),
        (["--size", "8"], (8, 8), 64, 62),
        (["--size", "16"], (16, 16), 85, 110),
        (["--size", "16", "24", "--seed", "1"], (16, 24), 107, 124),
        (["--size", "16", "--max-steps", "70"], (16, 16), 70, 110),
        (["--size=16"], (16, 16), 85, 110),
        (["--size", "24", "--size", "16"], (16, 16), 85, 110),
        (["--size", "two"], (12, 12), 64, 62),  # the command refuses it
    ],
)
def test_what_training_starts_from_grows_with_the_world(options, size, max_steps, checkpoints):
    config = base_config(["train", *options], find_family("lava"))
    assert (config.world.width, config.world.height) == size
    assert (config.world.max_steps, config.planning.checkpoints) == (max_steps, checkpoints)


def test_a_size_and_sides_must_agree(monkeypatch, tmp_path):
    options = ["--preset", "debug", "--out", str(tmp_path), "--size", "6", "--width", "7"]
    with pytest.raises(SystemExit, match="--size 6 contradicts a grid of 7x6"):
        skipper("train", *options, monkeypatch=monkeypatch)


def test_training_and_evaluating_a_run(monkeypatch, capsys, tmp_path):
    debug = ["--agent", "modelfree", "--preset", "debug", "--steps", "400"]
    options = [*debug, "--out", str(tmp_path), "--size", "6", "5", "--slip", "0.1"]
    options.insert(0, "--keep-weights")
    skipper("train", *options, "--batch-size", "8", monkeypatch=monkeypatch)
    assert "finished" in capsys.readouterr().out
    config = read_config(tmp_path)
    assert (config.preset, config.steps, config.learning.batch_size) == ("debug", 400, 8)
    assert (config.world.width, config.world.height, config.world.slip) == (6, 5, 0.1)
    skipper("evaluate", str(tmp_path), "--episodes", "10", "--json", monkeypatch=monkeypatch)
    assert json.loads(capsys.readouterr().out)["sets"]["0.45"]["episodes"] == 10
    skipper("evaluate", str(tmp_path), "--episodes", "4", "--step", "0", "--json", monkeypatch=monkeypatch)
    assert json.loads(capsys.readouterr().out)["about"]["steps"] == 0
    picture = tmp_path / "curves.png"
    skipper("plot", str(tmp_path), "--out", str(picture), monkeypatch=monkeypatch)
    assert picture.stat().st_size > 10_000
    with pytest.raises(SystemExit, match="name at least one"):
        skipper("plot", monkeypatch=monkeypatch)
    with pytest.raises(SystemExit, match=r"slip: 0\.1 -> 0\.2"):
        skipper("train", *options[:-1], "0.2", "--batch-size", "8", monkeypatch=monkeypatch)


def test_diagnosing_a_run(monkeypatch, capsys, tmp_path):
    options = ["--preset", "debug", "--agent", "skipper-once", "--steps", "400", "--generator-width", "4"]
    skipper("train", *options, "--out", str(tmp_path / "run"), monkeypatch=monkeypatch)
    capsys.readouterr()
    fewer = ["--episodes", "6", "--difficulties", "0.35", "0.45"]
    skipper("diagnose", str(tmp_path / "run"), *fewer, "--json", monkeypatch=monkeypatch)
    found = json.loads(capsys.readouterr().out)
    assert set(found["replaced"]) == set(REPLACED)
    assert found["replaced"]["all"]["0.45"]["success"] == 1.0
    assert found["replaced"]["nothing"]["0.35"]["episodes"] == 6
    assert found["truth"]["0.35"]["edges"]["1"]["pairs"] > 0
    assert {"edge_error_from_delusional", "edge_error_to_delusional"} <= set(found["truth"]["0.35"]["plans"])
    monkeypatch.setenv("COLUMNS", "200")
    skipper("diagnose", str(tmp_path / "run"), *fewer, monkeypatch=monkeypatch)
    printed = capsys.readouterr().out
    assert "true, not learned" in printed
    assert "walks that fail at 2" in printed
    one = ["--episodes", "4", "--difficulties", "0.55", "--json"]
    skipper("ablate", str(tmp_path / "run"), *one, monkeypatch=monkeypatch)
    ablated = json.loads(capsys.readouterr().out)
    of_leap = {"one subgoal", "reached subgoals left out"}
    assert set(PLANNING) - of_leap < set(ablated)
    assert not of_leap & set(ablated)
    assert ablated["no aids"]["0.55"]["episodes"] == 4
    few = ["--episodes", "7", "--difficulties", "0.35", "--training", "--json"]
    played = {}
    for variant in ("skipper-once", "skipper-oracle"):
        skipper("evaluate", str(tmp_path / "run"), "--agent", variant, *few, monkeypatch=monkeypatch)
        played[variant] = json.loads(capsys.readouterr().out)["sets"]
    assert list(played["skipper-once"]) == ["0.35", "training"]
    assert played["skipper-oracle"]["training"]["success"] == 1.0
    assert played["skipper-oracle"]["training"]["episodes"] == 2  # each task once
    assert played["skipper-once"]["0.35"]["success"] < 1.0
    skipper("evaluate", str(tmp_path / "run"), "--ensemble", "4", *few, monkeypatch=monkeypatch)
    assert json.loads(capsys.readouterr().out)["sets"]["0.35"]["episodes"] == 7
    other = ["--agent", "modelfree", "--preset", "debug", "--steps", "40"]
    skipper("train", *other, "--out", str(tmp_path / "mf"), monkeypatch=monkeypatch)
    with pytest.raises(SystemExit, match="'modelfree' does not plan"):
        skipper("diagnose", str(tmp_path / "mf"), monkeypatch=monkeypatch)


def test_every_command_knows_leap(monkeypatch, capsys, tmp_path):
    run = str(tmp_path / "run")
    options = ["--preset", "debug", "--agent", "leap", "--steps", "300", "--generator-steps", "200", "--out", run]
    skipper("train", *options, "--generator-width", "4", monkeypatch=monkeypatch)
    capsys.readouterr()
    few, found = ["--episodes", "4", "--difficulties", "0.35", "--json"], {}
    for command in ("evaluate", "diagnose", "ablate"):
        skipper(command, run, *few, monkeypatch=monkeypatch)
        found[command] = json.loads(capsys.readouterr().out)
    assert found["evaluate"]["sets"]["0.35"]["episodes"] == 4
    assert found["diagnose"]["replaced"]["all"]["0.35"]["success"] > 0.5
    assert 0.0 <= found["diagnose"]["truth"]["0.35"]["plans"]["delusional_vertices"] <= 1.0
    assert {"no aids", "one subgoal", "reached subgoals left out"} < set(found["ablate"])
    assert "5 sweeps" not in found["ablate"]
    page = tmp_path / "page.html"
    skipper("watch", run, "--task", "1", "--out", str(page), monkeypatch=monkeypatch)
    assert page.stat().st_size > 10_000


def test_the_preset_decides_the_defaults_of_all_other_options(monkeypatch, capsys):
    for arguments in (["--preset", "debug"], ["--preset=debug"]):
        skipper("train", *arguments, "--help", monkeypatch=monkeypatch)
        assert re.search(r"--steps INT[^-]*\(default:\W+2000\)", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--agent", "modelfre"], "did you mean 'modelfree'"),
        (["--agent", "optimal"], "does not learn"),
        (["--preset", "fastest"], "unknown preset"),
        (["--hidden", "0"], "hidden must be positive"),
        (["--hiden", "5"], "--hidden"),
    ],
)
def test_mistakes_in_training_leave_no_folder(options, wanted, monkeypatch, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        skipper("train", "--out", str(tmp_path / "run"), *options, monkeypatch=monkeypatch)
    assert wanted in str(stopped.value) + capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_the_benchmark_prints_its_rates(monkeypatch, capsys):
    skipper("bench", "world", "--seconds", "0.01", "--json", monkeypatch=monkeypatch)
    assert json.loads(capsys.readouterr().out)["vector_steps_ratio"] > 0
    skipper("bench", "world", "--seconds", "0.01", "--size", "5", monkeypatch=monkeypatch)
    assert "oracle tasks per s" in capsys.readouterr().out


@pytest.mark.usefixtures("short_benchmarks")
def test_all_benchmarks_run(monkeypatch, capsys):
    skipper("bench", "update", "--preset", "debug", "--seconds", "0.01", "--json", monkeypatch=monkeypatch)
    assert json.loads(capsys.readouterr().out)["preset"] == "debug"
    skipper("bench", "plan", "--preset", "debug", "--seconds", "0.01", "--json", monkeypatch=monkeypatch)
    assert json.loads(capsys.readouterr().out)["ms_batch64"] > 0
    skipper("bench", "train", "--preset", "debug", "--seconds", "0.5", "--json", monkeypatch=monkeypatch)
    trained = json.loads(capsys.readouterr().out)
    assert min(trained[name] for name in ("env_steps_per_s", "updates_per_s", "pairs_per_s")) > 0
    assert trained["peak_memory_mb"]["acting"] > 0
    assert 0.5 < sum(trained["share_of_time"].values()) < 1.05
    skipper("bench", "replay", "--samples", "5000", "--batch", "4", "--json", monkeypatch=monkeypatch)
    assert json.loads(capsys.readouterr().out)["batch"] == 4


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--agent", "optimall"], "did you mean 'optimal'"),
        (["--agent", "modelfree"], "must be trained first"),
        ([], "name an agent"),
        (["--agent", "random", "--training"], "--training needs the folder of a run, or --policy with its benchmark"),
        (["--agent", "random", "--ensemble", "8"], "--step, --revisit-penalty, --ensemble and --replan need"),
        ([str(PRETRAINED), "--ensemble", "9"], "must be 1 to 8"),
        ([str(PRETRAINED.parent / "modelfree-50"), "--replan", "step"], "unknown setting of modelfree 'replan'"),
        (["somewhere"], r"somewhere is not a run folder, nor a pretrained agent \(director-walls-1, "),
        ([str(PRETRAINED), "--size", "8"], r"those of the run are \(12, 12, 2\), these options give \(8, 8, 2\)"),
        (["--agent", "random", "--env", "lav"], "did you mean 'lava'"),
        (["--agent", "random", "--size", "2"], "at least 3"),
        (["--agent", "random", "--size", "2", "3", "4"], "one or two numbers"),
        (["--agent", "random", "--slip", "-0.5"], "possible: 0 to 1"),
        (["--agent", "random", "--difficulties", "0.99"], "leaves no path"),
        (["--agent", "random", "--episodes", "0"], "at least 1"),
        (["--agent", "random", "--episodes", "999999999"], "at most 100,000 tasks per evaluation set"),
    ],
)
def test_mistakes_are_one_line(options, wanted, monkeypatch):
    with pytest.raises(SystemExit, match=wanted) as stopped:
        skipper("evaluate", *options, monkeypatch=monkeypatch)
    assert "\n" not in str(stopped.value)


def test_unknown_options_are_refused_with_the_nearest_name():
    program = Path(sys.executable).parent / "skipper"
    run = subprocess.run([program, "evaluate", "--episods", "3"], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "--episodes" in run.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["train", "--help-all"],
        ["pretrained"],
        ["completion", "bash"],
        ["evaluate", "--agent", "optimal", "--episodes", "5", "--json"],  # print
        ["evaluate", "--agent", "optimal", "--episodes", "5"],  # rich
    ],
)
def test_output_that_nobody_reads_ends_the_command_quietly(arguments):
    program = Path(sys.executable).parent / "skipper"
    with subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        run.stdout.close()
        assert run.stderr.read() == b""
    assert run.returncode == 141


def test_comparing_two_agents(monkeypatch, capsys, tmp_path):
    for name, agent in (("one", "optimal"), ("two", "random")):
        skipper("evaluate", "--agent", agent, "--episodes", "20", "--json", monkeypatch=monkeypatch)
        (tmp_path / name).write_text(capsys.readouterr().out)
    files = ["--better", str(tmp_path / "one"), "--worse", str(tmp_path / "two")]
    skipper("compare", *files, "--json", monkeypatch=monkeypatch)
    assert json.loads(capsys.readouterr().out)["difference"] == 1.0
    skipper("compare", *files, monkeypatch=monkeypatch)
    assert "difference +1.000" in capsys.readouterr().out
