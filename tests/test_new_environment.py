"""Another environment needs nothing but a registered family: training, evaluation, loading and watching find it."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from toy_family import TOY, ToyConfig, ToyFamily

import skipper
from skipper.analysis.plots import draw_tasks
from skipper.cli import main
from skipper.config import RunConfig
from skipper.envs.registry import register_family
from skipper.training.evaluate import play
from skipper.training.run import Silence, Stop, train
from skipper.training.run_folder import read_config
from skipper.training.settings import configure, supported
from skipper.viewer.gallery import gallery

NOTES = [
    "no symmetries: the environment 'toy' offers none, so learning.symmetries is off",
    "no examples: the environment 'toy' offers none, so network.scaled_start is off",
    "no examples: the environment 'toy' offers none, so generator.flat_description is off",
]


class Lines(Silence):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


def short(agent: str, **changes) -> RunConfig:
    base = configure("fast", agent, "toy")
    learning = replace(base.learning, learning_starts=400, target_update_every=500)
    evaluation = replace(base.evaluation, evaluate_every=600, evaluation_episodes=6)
    return replace(base, steps=1_200, tasks=4, learning=learning, evaluation=evaluation, **changes)


def command(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["skipper", *arguments])
    main()


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A run of Skipper with the preset "fast"."""
    out = tmp_path_factory.mktemp("toy") / "run"
    lines = Lines()
    assert train(short("skipper-regen"), out, lines)
    assert lines.said == NOTES
    return out


def test_skipper_trains_is_evaluated_and_saved(run):
    records = [json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()]
    assert [record["step"] for record in records] == [0, 640, 1216]
    assert set(records[0]) == {"step", "training", "few", "many"}
    metrics = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    assert metrics["loss"] > 0
    # The folder keeps what was asked for.
    config = read_config(run)
    assert config.world == ToyConfig()
    assert config.learning.symmetries
    assert config.network.scaled_start


def test_the_run_resumes_exactly(run, tmp_path):
    class StopAt(Silence):
        def progress(self, step: int, metrics: dict[str, float]) -> None:
            stop.asked = step >= 700

    stop = Stop()
    assert not train(short("skipper-regen"), tmp_path, StopAt(), stop)
    lines = Lines()
    assert train(short("skipper-regen"), tmp_path, lines)
    assert lines.said == [*NOTES, "continuing at step 704"]
    for name in ("evaluations.jsonl", "weights.safetensors"):
        assert (run / name).read_bytes() == (tmp_path / name).read_bytes()


def test_the_trained_agent_acts_plans_and_plays(run):
    agent = skipper.load(run)
    tasks = TOY.evaluation_tasks(ToyConfig(), "many", 5, seed=0)
    envs = TOY.vector_env(5, tasks, ToyConfig(), one_each=True)
    observation, _ = envs.reset(seed=0)
    assert set(agent.act(observation).tolist()) <= {0, 1, 2}
    view = agent.plan(observation[0]).view(0)
    assert (view.states[0] == observation[0]).all()
    assert view.graph is not None
    episodes = play(agent.agent, TOY, tasks, seed=0)
    assert (episodes.success | episodes.death | episodes.timeout).all()


def test_commands_find_the_environment_of_a_run(run, tmp_path, monkeypatch, capsys):
    command("evaluate", str(run), "--episodes", "4", "--training", "--json", monkeypatch=monkeypatch)
    assert {name: row["episodes"] for name, row in json.loads(capsys.readouterr().out)["sets"].items()} == {
        "few": 4,
        "many": 4,
        "training": 4,
    }
    command("evaluate", "--env", "toy", "--agent", "random", "--side", "5", monkeypatch=monkeypatch)
    assert "level" in capsys.readouterr().out
    command("ablate", str(run), "--episodes", "2", "--json", monkeypatch=monkeypatch)
    assert json.loads(capsys.readouterr().out)["5 sweeps"]["many"]["episodes"] == 2
    command("plot", str(run), "--out", str(tmp_path / "curves.png"), monkeypatch=monkeypatch)
    assert (tmp_path / "curves.png").stat().st_size > 10_000
    for arguments, complaint in (
        (["evaluate", str(run), "--side", "5"], r"those of the run are \(4, 4, 2\), these options give \(5, 5, 2\)"),
        (["evaluate", "--env", "toy", "--agent", "optimal"], "must offer an Oracle"),
        (["evaluate", str(run), "--agent", "skipper-oracle"], "need an oracle; the environment 'toy' offers none"),
        (["evaluate", str(run), "--ensemble", "2"], "must be 1 to 1"),
        (["diagnose", str(run)], "'toy' offers no ground truth"),
    ):
        with pytest.raises(SystemExit, match=complaint):
            command(*arguments, monkeypatch=monkeypatch)


def test_episodes_are_watched_without_truth_and_without_a_goal(run, tmp_path, monkeypatch, capsys):
    page, data, film = (tmp_path / name for name in ("page.html", "data.json", "film.gif"))
    files = ["--out", str(page), "--json", str(data), "--png", "0", "--gif", str(film)]
    command("watch", str(run), "--set", "few", "--task", "1", *files, monkeypatch=monkeypatch)
    shown = json.loads(data.read_text())
    (episode,) = shown["episodes"]
    assert shown["actions"] == ["right", "down", "jump"]
    assert shown["about"]["level"] == "few"
    assert set(shown["colours"]) == set(".Go")
    assert not {"truth", "optimal", "goal"} & set(episode)
    assert episode["plans"][0]["status"]
    assert "states" not in episode["plans"][0]
    assert not {"state", "target_state", "slipped"} & set(episode["steps"][0])
    assert "<!doctype html>" in page.read_text()
    assert page.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert film.read_bytes().startswith(b"GIF")


def test_a_task_is_drawn_without_its_optimal_path(tmp_path):
    draw_tasks(TOY, {"few": TOY.evaluation_tasks(ToyConfig(), "few", 1, seed=0)}, tmp_path / "tasks.png")
    assert (tmp_path / "tasks.png").stat().st_size > 1_000


def test_modelfree_trains_by_command_and_is_watched(tmp_path, monkeypatch, capsys):
    options = ["--steps", "600", "--learning-starts", "200", "--evaluation-episodes", "3", "--side", "5"]
    out = ["--out", str(tmp_path / "run")]
    command("train", "--env", "toy", "--agent", "modelfree", *options, *out, monkeypatch=monkeypatch)
    printed = capsys.readouterr().out
    assert NOTES[0] in printed
    assert NOTES[1] in printed
    assert "flat_description" not in printed
    config = read_config(tmp_path / "run")
    assert (config.env, config.world) == ("toy", ToyConfig(side=5))
    shown = gallery("run", skipper.load(tmp_path / "run"), None, (0, 1))
    assert [len(episode["plans"]) for episode in shown.data["episodes"]] == [0, 0]


class NoScene(ToyFamily):
    name = "no scene"

    def spec(self, world: ToyConfig, tasks=None):
        return super().spec(world, tasks)._replace(scene=None)


def test_without_a_scene_skipper_refuses_and_modelfree_trains(tmp_path):
    register_family("no scene", NoScene)
    refused = replace(short("skipper-regen"), env="no scene")
    with pytest.raises(ValueError, match="needs a scene; the environment 'no scene' offers none"):
        train(refused, tmp_path / "refused")
    assert not (tmp_path / "refused").exists()
    assert train(replace(short("modelfree"), env="no scene"), tmp_path / "run")
    agent = skipper.load(tmp_path / "run")
    observation = np.zeros((4, 4, 2), np.uint8)
    assert agent.act(observation, goal=observation) in range(3)
    with pytest.raises(ValueError, match="wanted the goal too"):
        agent.act(observation)
    with pytest.raises(ValueError, match="so it needs a scene; 'no scene' offers none"):
        gallery("run", agent)


def test_what_is_supported_is_left_alone():
    config = configure("fast", "skipper-regen")
    spec = skipper.envs.registry.find_family("lava").spec(config.world)
    assert supported(config, spec) == (config, [])
    changed, notes = supported(config, spec._replace(symmetries=None))
    assert not changed.learning.symmetries
    assert changed == replace(config, learning=replace(config.learning, symmetries=False))
    assert len(notes) == 1
    truthful = replace(config, planning=replace(config.planning, oracle_parts=("edges",)))
    with pytest.raises(ValueError, match=r"oracle_parts \(edges\) need an oracle"):
        supported(truthful, spec._replace(oracle=None))
