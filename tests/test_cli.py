import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from skipper.cli import main


def skipper(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["skipper", *arguments])
    main()


def test_evaluation_as_json(monkeypatch, capsys):
    skipper("evaluate", "--agent", "optimal", "--episodes", "50", "--json", monkeypatch=monkeypatch)
    result = json.loads(capsys.readouterr().out)
    assert list(result) == ["0.25", "0.35", "0.45", "0.55"]
    for row in result.values():
        assert set(row) == {"success", "low", "high", "episodes", "length", "deaths", "timeouts"}
        assert (row["success"], row["episodes"], row["deaths"], row["timeouts"]) == (1.0, 50, 0.0, 0.0)
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
        return json.loads(capsys.readouterr().out)["0.4"]

    base = run()
    assert run("--seed", "1")["length"] != base["length"]
    assert run("--size", "8")["length"] < base["length"] - 3
    assert run("--max-steps", "14")["timeouts"] > 0.3
    assert run("--slip", "0.2")["deaths"] > 0.05
    assert run("--slip", "0.2", "--dynamics", "walls")["deaths"] == 0
    assert run("--spread", "0.0")["length"] != base["length"]


def test_the_demo_leaves_a_picture(monkeypatch, capsys, tmp_path):
    skipper("demo", "--out", str(tmp_path / "new"), "--episodes", "20", monkeypatch=monkeypatch)
    printed = capsys.readouterr().out
    assert "random" in printed
    assert "optimal" in printed
    assert (tmp_path / "new" / "tasks.png").stat().st_size > 10_000


def test_the_benchmark_prints_its_rates(monkeypatch, capsys):
    skipper("bench", "world", "--seconds", "0.01", "--json", monkeypatch=monkeypatch)
    assert json.loads(capsys.readouterr().out)["vector_steps_ratio"] > 0
    skipper("bench", "world", "--seconds", "0.01", "--size", "5", monkeypatch=monkeypatch)
    assert "oracle tasks" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--agent", "optimall"], "did you mean 'optimal'"),
        (["--size", "2"], "at least 3"),
        (["--size", "2", "3", "4"], "one or two numbers"),
        (["--slip", "-0.5"], "possible: 0 to 1"),
        (["--difficulties", "0.99"], "leaves no path"),
        (["--episodes", "0"], "at least 1"),
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
