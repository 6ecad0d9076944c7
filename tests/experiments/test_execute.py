"""Runs are skipped, continued, retried and reported."""

import signal
from pathlib import Path

import pytest
from fake_experiment import fake_evaluation, fake_training

from skipper.experiments.execute import TRIES, execute, read_history
from skipper.experiments.pool import LocalPool, Status
from skipper.experiments.works import COMMON, Evaluation, Training
from skipper.training.run import Stop

COMPARED = ("weights.safetensors", "evaluations.jsonl", "config.json")


def training(seed: int, **settings) -> Training:
    return Training("modelfree", "debug", seed, (("tasks", 2), *COMMON.items(), *settings.items()))


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr("skipper.experiments.execute.PAUSE", 0.0)


class Lines:
    """A display that keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)

    def show(self, runs) -> None:
        pass


class FakePool:
    """Makes runs at once; ``trouble`` are exit codes by name, used up one by one."""

    def __init__(self, root: Path, trouble: dict[str, list[int]] | None = None) -> None:
        self.root, self.trouble, self.started, self.avoided = root, trouble or {}, [], []
        self.pending: list[Status] = []
        self.stopped = False

    def slots(self) -> int:
        return 2

    def start(self, work, avoid: str) -> None:
        self.started.append(work.name)
        self.avoided.append(avoid)
        codes = self.trouble.get(work.name, [])
        code = codes.pop(0) if codes else 0
        if not code:
            (fake_training if isinstance(work, Training) else fake_evaluation)(work, self.root)
        self.pending.append(Status(work, work.done(self.root), "here", code, "no luck" if code else ""))

    def poll(self, seconds: float) -> list[Status]:
        reports, self.pending = self.pending, []
        return reports

    def stop(self) -> None:
        self.stopped = True


def test_finished_runs_are_skipped_and_evaluations_wait_for_their_training(tmp_path):
    works = [training(33), training(34), Evaluation(training(34)), Evaluation(training(33))]
    fake_training(works[0], tmp_path)
    pool = FakePool(tmp_path)
    runs = execute(works, tmp_path, pool, Lines(), Stop())
    assert pool.started == [works[1].name, works[3].name, works[2].name]
    assert all(run.state == "finished" for run in runs)
    again = FakePool(tmp_path)
    execute(works, tmp_path, again, Lines(), Stop())
    assert again.started == []


def test_a_failure_is_retried_elsewhere_and_then_reported_without_stopping_the_rest(tmp_path):
    works = [training(33), training(34), Evaluation(training(33)), Evaluation(training(34))]
    once, often = works[0].name, works[1].name
    pool, display = FakePool(tmp_path, {once: [1], often: [1] * TRIES}), Lines()
    runs = {run.work.name: run for run in execute(works, tmp_path, pool, display, Stop())}
    assert (pool.started.count(once), pool.started.count(often)) == (2, TRIES)
    assert pool.avoided[: len(works)].count("here") >= 1
    assert [runs[work.name].state for work in works] == ["finished", "failed", "finished", "failed"]
    assert runs[often].error == "no luck"
    assert runs[works[3].name].error == f"its training {often} failed"
    assert f"failed: {often} (no luck)" in display.lines
    assert [entry["outcome"] for entry in read_history(tmp_path) if entry["run"] == once] == [
        "to be tried again",
        "finished",
    ]


class Steps:
    """A run of five steps; every try makes as many as the pool gives it, and then its process dies."""

    name, needs, total = "steps", None, 5

    def done(self, root: Path) -> int:
        return len((root / "steps").read_text()) if (root / "steps").exists() else 0

    def finished(self, root: Path) -> bool:
        return self.done(root) >= self.total


@pytest.mark.parametrize(("gain", "state", "tries"), [(1, "finished", 5), (0, "failed", TRIES)])
def test_a_run_that_gets_further_is_tried_as_often_as_it_needs(gain, state, tries, tmp_path):
    class Dying(FakePool):
        def start(self, work, avoid: str) -> None:
            self.started.append(work.name)
            with (self.root / "steps").open("a") as file:
                file.write(gain * ".")
            self.pending.append(Status(work, work.done(self.root), "here", -9, ""))

    pool = Dying(tmp_path)
    (run,) = execute([Steps()], tmp_path, pool, Lines(), Stop())
    assert (run.state, len(pool.started)) == (state, tries)
    assert run.error == ("" if gain else "ended early, with exit code -9")


def test_stopping_saves_all_runs(tmp_path):
    pool, stop = FakePool(tmp_path), Stop()
    stop.asked = True
    runs = execute([training(33)], tmp_path, pool, Lines(), stop)
    assert pool.stopped
    assert [run.state for run in runs] == ["waiting"]


def make(works, root: Path, pool: LocalPool):
    root.mkdir()
    runs = execute(works, root, pool, Lines(), Stop())
    assert [run.state for run in runs] == ["finished"] * len(works)


@pytest.fixture(scope="module")
def works():
    return [training(33, checkpoint_every=100), Evaluation(training(33, checkpoint_every=100), episodes=8, curve=4)]


@pytest.fixture(scope="module")
def quiet_run(works, tmp_path_factory) -> Path:
    """The runs as nobody interrupts them."""
    root = tmp_path_factory.mktemp("quiet") / "out"
    make(works, root, LocalPool(root, cores=1))
    return root


class KillingPool(LocalPool):
    """Kills the first training once it has saved a checkpoint."""

    killed = 0

    def poll(self, seconds: float) -> list[Status]:
        for work, command in self.running.items():
            saved = isinstance(work, Training) and any(work.folder(self._root).glob("checkpoints/step-*"))
            if saved and not self.killed:
                command.process.send_signal(signal.SIGKILL)
                self.killed += 1
        return super().poll(0.02)


def test_a_killed_process_changes_nothing(works, quiet_run, tmp_path):
    root = tmp_path / "out"
    pool = KillingPool(root, cores=1)
    make(works, root, pool)
    assert pool.killed == 1
    assert [entry["outcome"] for entry in read_history(root)] == ["to be tried again", "finished", "finished"]
    for name in COMPARED:
        assert (works[0].folder(root) / name).read_bytes() == (works[0].folder(quiet_run) / name).read_bytes()
    assert works[1].file(root).read_bytes() == works[1].file(quiet_run).read_bytes()


def test_stopped_processes_save_and_the_next_call_continues(works, quiet_run, tmp_path):
    root, stop = tmp_path / "out", Stop()
    root.mkdir()

    class Stopping(LocalPool):
        def poll(self, seconds: float) -> list[Status]:
            stop.asked = any(work.done(root) >= 400 for work in self.running)
            return super().poll(0.02)

    execute(works, root, Stopping(root, cores=1), Lines(), stop)
    assert not works[0].finished(root)
    assert any(works[0].folder(root).glob("checkpoints/step-*"))
    execute(works, root, LocalPool(root, cores=1), Lines(), Stop())
    assert works[1].file(root).read_bytes() == works[1].file(quiet_run).read_bytes()
