import json
import os
import shutil
import signal
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
import torch
from rich.console import Console

import skipper
from skipper.agents.modelfree.agent import ModelFreeAgent, play_modelfree
from skipper.agents.registry import KINDS, Builders
from skipper.envs.lava.family import LAVA, LavaFamily
from skipper.training.progress import ProgressDisplay
from skipper.training.run import Silence, Stop, train
from skipper.training.run_folder import read_weights
from skipper.training.settings import configure
from skipper.training.state_file import read_state
from skipper.types import Stage

SHORT = replace(configure("debug", "modelfree"), steps=800)


class Watcher(Silence):
    """Remembers what it is shown."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.evaluations: list[int] = []
        self.last = 0

    def say(self, text: str) -> None:
        self.lines.append(text)

    def progress(self, step: int, metrics: dict[str, float]) -> None:
        self.last = step

    def evaluation(self, step, results) -> None:
        self.evaluations.append(step)


class StopAt(Watcher):
    def __init__(self, step: int, stop: Stop) -> None:
        super().__init__()
        self._step, self._stop = step, stop

    def progress(self, step: int, metrics: dict[str, float]) -> None:
        super().progress(step, metrics)
        self._stop.asked = self._stop.asked or step >= self._step


def files(path) -> dict[str, bytes]:
    return {name: (path / name).read_bytes() for name in ("config.json", "evaluations.jsonl", "weights.safetensors")}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a run that nobody interrupted, which tests only read, and what was displayed of it."""
    folder, watcher = tmp_path_factory.mktemp("runs") / "finished", Watcher()
    assert train(SHORT, folder, watcher)
    return folder, watcher


@pytest.fixture
def whole(finished):
    return finished[0]


def test_a_run_writes_its_folder(finished):
    folder, watcher = finished
    names = {path.name for path in folder.iterdir()} - {".lock"}
    assert names == {
        "config.json",
        "evaluations.jsonl",
        "metrics.jsonl",
        "weights.safetensors",
        "checkpoints",
        "tensorboard",
    }
    assert watcher.evaluations == [0, 500, 800]
    records = [json.loads(line) for line in (folder / "evaluations.jsonl").read_text().splitlines()]
    assert [record["step"] for record in records] == [0, 500, 800]
    assert set(records[0]) == {"step", "training", "0.25", "0.35", "0.45", "0.55"}
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [record["step"] for record in metrics] == [200, 400, 600, 800]
    assert "loss" not in metrics[0]
    assert metrics[-1]["loss"] > 0
    assert metrics[-1]["steps_per_s"] > 0


def test_the_seed_decides_the_run(whole, tmp_path):
    for name, seed in (("same", 0), ("other", 1)):
        train(replace(SHORT, seed=seed), tmp_path / name)
    assert files(whole) == files(tmp_path / "same")
    assert files(whole)["weights.safetensors"] != files(tmp_path / "other")["weights.safetensors"]


def test_an_interrupted_run_equals_a_whole_one(whole, tmp_path):
    for step in (36, 300, 444, 700):  # before the first update, between checkpoints, and late
        stop = Stop()
        assert not train(SHORT, tmp_path / "parts", StopAt(step, stop), stop)
    watcher = Watcher()
    assert train(SHORT, tmp_path / "parts", watcher)
    assert watcher.lines == ["continuing at step 700"]
    assert files(whole) == files(tmp_path / "parts")
    losses = [
        [json.loads(line).get("loss") for line in (folder / "metrics.jsonl").read_text().splitlines()]
        for folder in (whole, tmp_path / "parts")
    ]
    assert losses[0] == losses[1]


def test_a_finished_run_is_not_changed(whole, tmp_path):
    copy = shutil.copytree(whole, tmp_path / "copy")
    before = files(copy), sorted(os.listdir(copy / "checkpoints"))
    assert train(SHORT, copy)
    assert (files(copy), sorted(os.listdir(copy / "checkpoints"))) == before


def test_training_on_endless_tasks_can_be_resumed(tmp_path):
    config = replace(SHORT, tasks=0)
    train(config, tmp_path / "whole")
    stop = Stop()
    train(config, tmp_path / "parts", StopAt(400, stop), stop)
    train(config, tmp_path / "parts")
    assert files(tmp_path / "whole") == files(tmp_path / "parts")


def test_recording_more_often_changes_nothing(whole, tmp_path):
    often = replace(SHORT, evaluation=replace(SHORT.evaluation, evaluate_every=100), record_every=50)
    train(often, tmp_path, ProgressDisplay(800, Console(file=StringIO(), force_terminal=True)))
    often_watched, seldom_watched = (read_weights(folder) for folder in (tmp_path, whole))
    assert all((often_watched[name] == seldom_watched[name]).all() for name in often_watched)


def test_signals_save_and_end_the_run(whole, tmp_path):
    class Interrupt(Watcher):
        def progress(self, step: int, metrics: dict[str, float]) -> None:
            super().progress(step, metrics)
            if step == 400:
                os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    watcher = Interrupt()
    assert not train(SHORT, tmp_path / "parts", watcher)
    assert watcher.last == 400
    assert signal.getsignal(signal.SIGTERM) is before
    assert train(SHORT, tmp_path / "parts")
    assert files(whole) == files(tmp_path / "parts")


def test_a_loss_of_nan_ends_the_run_and_keeps_the_checkpoint(tmp_path, monkeypatch):
    stop = Stop()
    train(SHORT, tmp_path, StopAt(400, stop), stop)
    kept = {path.name: path.read_bytes() for path in (tmp_path / "checkpoints").iterdir()}
    learn = ModelFreeAgent.learn

    def broken(agent):
        if agent.core.updates == 60:
            with torch.no_grad():
                next(agent.core.network.parameters()).fill_(float("nan"))
        return learn(agent)

    with monkeypatch.context() as patch:
        patch.setattr(ModelFreeAgent, "learn", broken)
        with pytest.raises(ValueError, match=r"training ended at step 4\d\d: the loss became nan"):
            train(SHORT, tmp_path)
    assert {path.name: path.read_bytes() for path in (tmp_path / "checkpoints").iterdir()} == kept
    assert train(SHORT, tmp_path)


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_is_used(whole, tmp_path):
    stop = Stop()
    train(SHORT, tmp_path, StopAt(600, stop), stop)
    newest = sorted((tmp_path / "checkpoints").iterdir())[-1]
    newest.write_bytes(newest.read_bytes()[:1000])
    watcher = Watcher()
    train(SHORT, tmp_path, watcher)
    assert newest.name in watcher.lines[0]
    assert watcher.lines[1] == "continuing at step 400"
    assert files(whole) == files(tmp_path)


def test_a_trained_agent_is_loaded_in_two_lines(whole):
    agent = skipper.load(whole)
    observation = np.ones((5, 5, 2), np.uint8)
    observation[0, 0] = 10, 0
    assert agent.act(observation) in range(4)
    batch = np.repeat(observation[None], 6, 0)
    assert agent.act(batch).shape == (6,)
    agent.reset()
    with pytest.raises(ValueError, match=r"wanted an observation \(5, 5, 2\)"):
        agent.act(np.ones((4, 4, 2), np.uint8))


def test_the_display_shows_steps_speed_and_success(tmp_path):
    out = StringIO()
    with ProgressDisplay(SHORT.steps, Console(file=out, force_terminal=True, width=120)) as display:
        train(SHORT, tmp_path, display)
    shown = out.getvalue()
    assert "/ 800 steps" in shown
    assert "steps/s" in shown
    assert "success training 0." in shown
    quiet = StringIO()
    with ProgressDisplay(SHORT.steps, Console(file=quiet)) as display:
        display.progress(5, {"steps_per_s": 3.0})
        display.evaluation(5, {"training": {"success": 0.5}})
    assert quiet.getvalue() == "step         5 success training 0.50\n"


def test_a_run_that_truncated_its_records_can_be_resumed(tmp_path):
    """A kill before the first checkpoint leaves records that no checkpoint covers."""
    config = replace(SHORT, checkpoint_every=10_000)

    class Die(Watcher):
        def progress(self, step: int, metrics: dict[str, float]) -> None:
            if step >= 300:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "parts", Die())
    stop = Stop()
    train(config, tmp_path / "parts", StopAt(100, stop), stop)
    assert train(config, tmp_path / "parts")
    train(config, tmp_path / "whole")
    assert files(tmp_path / "whole") == files(tmp_path / "parts")


def test_a_stop_before_the_first_step_saves_a_checkpoint(tmp_path):
    stop = Stop()
    stop.asked = True
    assert not train(SHORT, tmp_path, None, stop)
    assert len(list((tmp_path / "checkpoints").iterdir())) == 1
    assert train(SHORT, tmp_path)


def test_two_threads_resume_exactly(tmp_path):
    config = replace(SHORT, threads=2)
    train(config, tmp_path / "whole")
    stop = Stop()
    train(config, tmp_path / "parts", StopAt(500, stop), stop)
    train(config, tmp_path / "parts")
    assert files(tmp_path / "whole") == files(tmp_path / "parts")


def test_the_seed_reaches_the_environments(tmp_path):
    """Without updates, only tasks, starts and exploration can differ."""
    blind = replace(SHORT, learning=replace(SHORT.learning, learning_starts=10**9))
    states = []
    for seed in (0, 1):
        train(replace(blind, seed=seed), tmp_path / str(seed))
        newest = sorted((tmp_path / str(seed) / "checkpoints").iterdir())[-1]
        states.append(read_state(newest, "checkpoint")["state"]["loop"]["envs"]["states"])
    assert not (states[0] == states[1]).any()


def test_the_weights_are_those_of_the_last_step(whole):
    saved = read_state(whole / "weights.safetensors", "weights")
    assert saved["step"] == 800
    newest = sorted((whole / "checkpoints").iterdir())[-1]
    network = read_state(newest, "checkpoint")["state"]["loop"]["learner"]["core"]["network"]
    assert all((saved["weights"][name] == network[name]).all() for name in network)


def test_loading_does_not_use_the_global_random_stream(whole):
    before = torch.random.get_rng_state()
    agent = skipper.load(whole)
    assert (torch.random.get_rng_state() == before).all()
    with pytest.raises(ValueError, match="whole numbers"):
        agent.act(np.ones((5, 5, 2)))


class StagedAgent(ModelFreeAgent):
    """Acts at random in a first stage that is not charged."""

    stage = ""

    def stages(self) -> tuple[Stage, ...]:
        return Stage("pretraining", 600, charged=False), Stage("training", self.config.steps, charged=True)

    def begin_stage(self, name: str) -> None:
        self.stage = name

    def act(self, timestep):
        decision = super().act(timestep)
        if self.stage == "training":
            return decision
        return decision._replace(action=self._act_rng.integers(4, size=len(decision.action)))

    def state_dict(self):
        return super().state_dict() | {"stage": self.stage}

    def load_state_dict(self, state) -> None:
        super().load_state_dict(state)
        self.stage = state["stage"]


class StopAfter(Watcher):
    """Stops after some steps of all environments, of whatever stage."""

    def __init__(self, turns: int, stop: Stop) -> None:
        super().__init__()
        self._turns, self._stop = turns, stop

    def progress(self, step: int, metrics: dict[str, float]) -> None:
        self._turns -= 1
        self._stop.asked = self._turns <= 0


def test_a_run_in_stages_is_interrupted_in_each_and_ends_as_if_it_was_not(tmp_path, monkeypatch):
    staged = replace(KINDS["modelfree"], load=lambda: Builders(StagedAgent, play_modelfree))
    monkeypatch.setitem(KINDS, "staged", staged)
    config = replace(SHORT, agent="staged", environments=4)
    watcher = Watcher()
    assert train(config, tmp_path / "whole", watcher)
    assert watcher.evaluations == [0, 500, 800]  # of the charged steps
    for turns in (60, 100, 50):  # within the first stage, into the second, within it
        stop = Stop()
        assert not train(config, tmp_path / "parts", StopAfter(turns, stop), stop)
    assert train(config, tmp_path / "parts")
    assert files(tmp_path / "whole") == files(tmp_path / "parts")
    records = [json.loads(line) for line in (tmp_path / "parts" / "metrics.jsonl").read_text().splitlines()]
    found = [(record["step"], record["uncharged_steps"], record["stage"]) for record in records]
    assert found == [(0, 200, 0), (0, 400, 0), (0, 600, 0), (200, 600, 1), (400, 600, 1), (600, 600, 1), (800, 600, 1)]
    assert sorted(os.listdir(tmp_path / "parts" / "checkpoints"))[-1] == "step-000000001400.safetensors"


@pytest.mark.parametrize("tasks", [0, 3])
def test_initialisation_sees_the_tasks_of_the_run_and_no_others(tasks, tmp_path, monkeypatch):
    seen = []

    class Observer(ModelFreeAgent):
        def __init__(self, config, spec):
            seen.append(spec.examples)
            super().__init__(config, spec)

    observed = replace(KINDS["modelfree"], load=lambda: Builders(Observer, play_modelfree))
    monkeypatch.setitem(KINDS, "modelfree", observed)
    assert train(replace(SHORT, steps=20, tasks=tasks), tmp_path)
    fixed = LAVA.training_tasks(SHORT.world, tasks, SHORT.seed) if tasks else None
    wanted = fixed.observe(np.arange(tasks), fixed.table.start) if fixed else LAVA.spec(SHORT.world).examples
    assert np.array_equal(seen[0], wanted)


def test_loading_needs_no_training_tasks(whole, monkeypatch):
    monkeypatch.delattr(LavaFamily, "training_tasks")
    skipper.load(whole)
