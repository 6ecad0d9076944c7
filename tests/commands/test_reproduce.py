import os
import re
import shlex
import signal
import subprocess
import sys

import pytest
from fake_experiment import fake_works

from skipper.cli import main
from skipper.experiments.define import Scale, works_of
from skipper.experiments.paper import ITEMS
from skipper.experiments.pool import wait_until


def skipper(monkeypatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["skipper", *arguments])
    main()


@pytest.fixture
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")


@pytest.mark.usefixtures("wide")
def test_the_list_shows_labels_runs_and_costs(monkeypatch, capsys, tmp_path):
    measured = []

    def measure(config):
        measured.append((config.agent, config.preset, config.threads))
        return 1_000.0, 50.0

    monkeypatch.setattr("skipper.commands.reproduce.measure", measure)
    done = works_of(ITEMS["fig-always-goal"], Scale(seeds=1))
    fake_works(done, tmp_path)
    skipper(monkeypatch, "reproduce", "--list", "--seeds", "1", "--out", str(tmp_path))
    printed = capsys.readouterr().out
    for item in ITEMS.values():
        for text in (item.name, *item.labels):
            assert text in printed
    assert re.search(r"fig-always-goal .* 3 runs, 3 there; cost 0 s", printed)
    # The training and the evaluation of skipper-once are there; 800,000 steps of three agents, LEAP's first stage, and
    # evaluations are not.
    assert re.search(r"fig-50-tasks .* 9 runs, 2 there; cost \d+ min", printed)
    assert sorted(measured) == sorted(set(measured))
    assert {threads for *_, threads in measured} == {1}


def test_a_dry_run_prints_commands_and_makes_nothing(monkeypatch, capsys, tmp_path):
    out = str(tmp_path / "some where")
    skipper(monkeypatch, "reproduce", "fig-ground-truth", "--seeds", "2", "--out", out, "--dry-run")
    lines = [shlex.split(line) for line in capsys.readouterr().out.splitlines()]
    assert [line[:2] for line in lines] == [["skipper", "train"]] * 2 + [["skipper", "evaluate"]] * 8
    assert not (tmp_path / "some where").exists()


@pytest.mark.usefixtures("wide")
def test_only_some_agents(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("skipper.commands.reproduce.measure", lambda config: (1_000.0, 50.0))
    chosen = ("--seeds", "1", "--agents", "skipper-once", "leap", "--out", str(tmp_path))
    skipper(monkeypatch, "reproduce", "fig-num-tasks", *chosen, "--dry-run")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 * 6 * 2  # agents, numbers of tasks, trainings and evaluations
    assert not any("modelfree" in line or "director" in line for line in lines)
    skipper(monkeypatch, "reproduce", "--list", *chosen)
    listed = capsys.readouterr().out
    assert "fig-leap-num-tasks" in listed
    assert "fig-director-num-tasks" not in listed
    assert "tab-once" in listed
    assert "tab-regen" not in listed  # its first agent is left out


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["tab-once", "--agents", "skipper-regen"], "unknown agent of tab-once"),
        (["tab-once", "--agents", "modelfree", "leap"], "compares skipper-once with others"),
        (["tab-once", "--agents", "skipper-once"], "compares skipper-once with others"),
        (["tab-once", "--agents"], "at least one agent"),
        (["--list", "--agents", "lep"], "unknown agent 'lep'.*did you mean 'leap'"),
        (["smoke", "--steps", "0"], "--steps wants at least 1, got 0"),
        ([], "name a figure or table"),
        (["fig-50"], "did you mean"),
        (["smoke", "--seeds", "0"], "--seeds wants at least 1, got 0"),
        (["smoke", "--preset", "fastest"], "unknown preset"),
    ],
)
def test_mistakes_are_one_line(arguments, wanted, monkeypatch, tmp_path):
    with pytest.raises(SystemExit, match=wanted):
        skipper(monkeypatch, "reproduce", *arguments, "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_what_is_there_is_reported_and_not_made_again(monkeypatch, capsys, tmp_path):
    fake_works(works_of(ITEMS["smoke"], Scale()), tmp_path)
    skipper(monkeypatch, "reproduce", "smoke", "--out", str(tmp_path))
    assert f"wrote {tmp_path / 'report.html'}" in capsys.readouterr().out
    written = (tmp_path / "report.html").stat().st_mtime_ns
    skipper(monkeypatch, "reproduce", "smoke", "--out", str(tmp_path))
    assert "all 18 runs of smoke are there: nothing to do" in capsys.readouterr().out
    assert (tmp_path / "report.html").stat().st_mtime_ns == written
    skipper(monkeypatch, "report", str(tmp_path))
    assert "wrote" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="holds no experiment"):
        skipper(monkeypatch, "report", str(tmp_path / "elsewhere"))


def test_failed_runs_are_named_at_the_end(monkeypatch, tmp_path):
    monkeypatch.setattr("skipper.experiments.execute.PAUSE", 0.0)
    monkeypatch.setattr("skipper.experiments.pool.Command.__init__", lambda command, work, root: None)
    monkeypatch.setattr("skipper.experiments.pool.Command.code", lambda command: 1)
    monkeypatch.setattr("skipper.experiments.pool.Command.error", lambda command: "one\nthe disk is full")
    with pytest.raises(SystemExit, match=r"18 of 18 runs failed: .*: the disk is full"):
        skipper(monkeypatch, "reproduce", "smoke", "--out", str(tmp_path))
    assert "the disk is full" in (tmp_path / "report.md").read_text()


def test_an_item_that_the_report_does_not_show_yet_is_reported(monkeypatch, capsys, tmp_path):
    out = ("--seeds", "1", "--out", str(tmp_path))
    for name in ("fig-always-goal", "fig-ground-truth"):
        fake_works(works_of(ITEMS[name], Scale(seeds=1)), tmp_path)
        skipper(monkeypatch, "reproduce", name, *out)
        assert f"wrote {tmp_path / 'report.html'}" in capsys.readouterr().out
    assert "fig-ground-truth" in (tmp_path / "report.html").read_text()
    # Results that are newer than the report are reported, too.
    report = (tmp_path / "report.html").stat().st_mtime
    file = works_of(ITEMS["fig-ground-truth"], Scale(seeds=1))[-1].file(tmp_path)
    os.utime(file, (report + 10, report + 10))
    skipper(monkeypatch, "reproduce", "fig-ground-truth", *out)
    assert "wrote" in capsys.readouterr().out


def test_another_scale_of_an_item_is_named(monkeypatch, capsys, tmp_path):
    for chosen in ((), ("--agents", "skipper-once")):
        scale = Scale(seeds=1, agents=chosen[1:] or None)
        fake_works(works_of(ITEMS["fig-always-goal"], scale), tmp_path)
        skipper(monkeypatch, "reproduce", "fig-always-goal", "--seeds", "1", *chosen, "--out", str(tmp_path))
    assert "fig-always-goal was made here with other options" in capsys.readouterr().out
    assert "without skipper-goal" in (tmp_path / "report.md").read_text()


def test_ctrl_c_saves_all_runs_and_leaves(tmp_path):
    options = ("--preset", "debug", "--seeds", "1", "--steps", "500000", "--out", str(tmp_path))
    command = [sys.executable, "-m", "skipper", "reproduce", "fig-always-goal", *options]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: list(tmp_path.glob("runs/*/metrics.jsonl")) or driver.poll() is not None, 120.0)
        driver.send_signal(signal.SIGINT)
        printed, _ = driver.communicate(timeout=120)
    finally:
        driver.kill()  # its runs end with it
    assert driver.returncode == 130
    assert "saved; the same command continues" in printed
    assert list(tmp_path.glob("runs/*/checkpoints/step-*.safetensors"))
