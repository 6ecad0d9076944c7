"""Training on stock MiniGrid: by command, with exact resume, without a goal, evaluated, watched."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import skipper
from skipper.cli import main
from skipper.config import RunConfig
from skipper.training.run import Silence, Stop, train
from skipper.training.settings import configure

DOORS, UNLOCK = "minigrid:MiniGrid-DoorKey-5x5-v0", "minigrid:MiniGrid-Unlock-v0"


class Lines(Silence):
    def __init__(self, stop: Stop | None = None) -> None:
        self.said: list[str] = []
        self._stop = stop

    def say(self, text: str) -> None:
        self.said.append(text)

    def progress(self, step: int, metrics: dict[str, float]) -> None:
        if self._stop is not None:
            self._stop.asked = step >= 300


def short(agent: str, env: str, tasks: int) -> RunConfig:
    base = configure("debug", agent, env)
    learning = replace(base.learning, learning_starts=150)
    evaluation = replace(base.evaluation, evaluate_every=250, evaluation_episodes=3)
    world = replace(base.world, max_steps=30)
    return replace(base, steps=500, tasks=tasks, learning=learning, evaluation=evaluation, world=world)


def command(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["skipper", *arguments])
    main()


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("doors") / "run"
    lines = Lines()
    assert train(short("skipper-regen", DOORS, 0), out, lines)
    assert lines.said[-2:] == [
        "the environment itself is stepped, in this process",
        "only 6 different layouts: 1 for evaluation, 1 for tuning, 4 for training",
    ]
    return out


@pytest.mark.parametrize("tasks", [0, 2])
def test_a_run_resumes_exactly(run, tmp_path, tasks):
    config, whole = short("skipper-regen", DOORS, tasks), run
    if tasks:
        whole, lines = tmp_path / "whole", Lines()
        assert train(config, whole, lines)
        assert "transition tables of up to 261 states" in lines.said[-2]
    stop = Stop()
    assert not train(config, tmp_path / "parts", Lines(stop), stop)
    assert train(config, tmp_path / "parts")
    for name in ("evaluations.jsonl", "weights.safetensors"):
        assert (whole / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()


def test_a_task_without_a_goal_learns_it(tmp_path):
    lines = Lines()
    assert train(short("skipper-once", UNLOCK, 0), tmp_path, lines)
    assert f"no goals: the environment {UNLOCK!r} offers none, so generator.learned_goal is on" in lines.said
    assert skipper.load(tmp_path).config.env == UNLOCK
    with pytest.raises(ValueError, match="'leap' must be given the goal"):
        train(short("leap", UNLOCK, 0), tmp_path / "leap")


def test_it_is_evaluated_diagnosed_and_watched(run, tmp_path, monkeypatch, capsys):
    command("evaluate", str(run), "--episodes", "3", "--json", monkeypatch=monkeypatch)
    results = json.loads(capsys.readouterr().out)
    assert results["sets"]["unseen"]["episodes"] == 3
    assert "only 6 different layouts: 1 for evaluation" in results["about"]["caveat"]
    command("evaluate", "--env", DOORS, "--agent", "optimal", "--episodes", "3", "--json", monkeypatch=monkeypatch)
    assert json.loads(capsys.readouterr().out)["sets"]["unseen"]["success"] == 1.0
    command("diagnose", str(run), "--episodes", "2", "--json", monkeypatch=monkeypatch)
    capsys.readouterr()
    page, data = tmp_path / "page.html", tmp_path / "data.json"
    files = ["--out", str(page), "--json", str(data), "--png", "0"]
    command("watch", str(run), "--task", "0", *files, monkeypatch=monkeypatch)
    shown = json.loads(data.read_text())
    (episode,) = shown["episodes"]
    assert {step["direction"] for step in episode["steps"]} <= {0, 1, 2, 3}
    assert set("".join([episode["layout"], *shown["mark_colours"]])) <= set(shown["colours"])


def test_every_agent_that_plans_trains(tmp_path):
    for agent in ("leap", "modelfree"):
        assert train(short(agent, DOORS, 2), tmp_path / agent)


def test_new_tasks_like_those_of_training_are_evaluated(run, capsys, monkeypatch):
    asked = ("--episodes", "3", "--training", "--json")
    command("evaluate", str(run), *asked, monkeypatch=monkeypatch)
    sets = json.loads(capsys.readouterr().out)["sets"]
    assert {name: result["episodes"] for name, result in sets.items()} == {"unseen": 3, "training": 3}
