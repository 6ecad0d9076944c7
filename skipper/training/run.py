"""A training run from its configuration to its folder; it resumes at any moment, and observers do not change it."""

import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import numpy as np

from skipper.agents.optimizer import NotFiniteError
from skipper.agents.registry import agent_kind
from skipper.config import RunConfig
from skipper.envs.registry import TaskSet, find_family
from skipper.runtime.threads import configure_threads
from skipper.training.evaluate import evaluate_learner
from skipper.training.loop import Loop
from skipper.training.recorder import Recorder
from skipper.training.run_folder import RunFolder
from skipper.training.settings import supported
from skipper.training.tracking import Library, Tracker, need_library, tracking
from skipper.types import EnvironmentSpec


class Display(Protocol):
    """Shows the progress of a run."""

    def say(self, text: str) -> None:
        """Print one line."""

    def progress(self, step: int, metrics: dict[str, float]) -> None:
        """Show the current step, and new metrics where there are any."""

    def evaluation(self, step: int, results: dict[str, dict[str, Any]]) -> None:
        """Show new success rates."""


class Silence:
    """A display that shows nothing."""

    def say(self, text: str) -> None:
        """Ignore it."""

    def progress(self, step: int, metrics: dict[str, float]) -> None:
        """Ignore it."""

    def evaluation(self, step: int, results: dict[str, dict[str, Any]]) -> None:
        """Ignore it."""


class Stop:
    """Whether the run should end early: Ctrl-C or SIGTERM set it, the run checks it between steps."""

    def __init__(self) -> None:
        self.asked = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle the signals inside the context."""

        def handle(_number: int, _frame: FrameType | None) -> None:
            self.asked = True

        before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class Run:
    """A run in progress: the loop, and everything that is measured, recorded and saved around it."""

    def __init__(
        self,
        config: RunConfig,
        tasks: TaskSet | None,
        spec: EnvironmentSpec,
        folder: RunFolder,
        display: Display,
        tracker: Tracker | None = None,
    ) -> None:
        self.config, self.tasks, self.folder, self.display = config, tasks, folder, display
        configure_threads(config.network_threads)
        learner = agent_kind(config.agent).load().train(config, spec)
        family = find_family(config.env)
        envs = family.vector_env(config.environments, tasks, config.world)
        env_seed = int(np.random.default_rng([config.seed, *b"environments"]).integers(2**32))
        self.loop = Loop(learner, envs, config.learning, env_seed, family.success)
        self._updates: list[Mapping[str, float]] = []  # metrics that were not read yet
        self._sums: dict[str, Any] = {}  # sum and count of each metric since the last record
        self._saved = -1  # environment steps of all stages at the newest checkpoint
        self.recorder = self._restore()
        if tracker is not None:
            self.recorder.track(tracker)
        self._clock, self._clock_step = time.monotonic(), self.loop.all_steps

    def _restore(self) -> Recorder:
        """Continue from the newest valid checkpoint, if there is one."""
        recorders: list[Recorder] = []

        def restore(state: dict[str, Any]) -> None:
            self.loop.load_state_dict(state["loop"])
            self._sums = state["sums"]
            recorders.append(Recorder(self.folder.path, state["recorder"], self.loop.step))

        found, refused = self.folder.restore_latest(restore)
        for reason in refused:
            self.display.say(f"refused: {reason}; using the checkpoint before it")
        if not found:
            return Recorder(self.folder.path, None, 0)
        self._saved = self.loop.all_steps
        self.display.say(f"continuing at step {self.loop.step:,}")
        return recorders[-1]

    def go(self, stop: Stop) -> bool:
        """Train until the end or a request to stop; True at the end."""
        if self.loop.step >= self.config.steps:
            return True
        if self.loop.all_steps == 0:
            self._evaluate()
        while self.loop.step < self.config.steps and not stop.asked:
            # Evaluations follow the charged steps; records and checkpoints those of all stages.
            charged, every_step = self.loop.step, self.loop.all_steps
            updates = self.loop.advance()
            self._record(every_step, updates)
            if self._passed(charged, self.loop.step, self.config.evaluation.evaluate_every):
                self._evaluate()
            if self._passed(every_step, self.loop.all_steps, self.config.checkpoint_every):
                self._save()
        if self._saved != self.loop.all_steps:
            self._save()
        return self.loop.step >= self.config.steps

    def _passed(self, before: int, now: int, every: int) -> bool:
        """Whether the last step passed a multiple of ``every`` or reached the end."""
        return before // every < now // every or self.loop.step >= self.config.steps

    def _record(self, before: int, updates: list[Mapping[str, float]]) -> None:
        self._updates += updates
        if not self._passed(before, self.loop.all_steps, self.config.record_every):
            self.display.progress(self.loop.step, {})
            return
        self._sum_up()
        _, count = self._sums.pop("updates", (0.0, 0))
        now = time.monotonic()
        seconds = max(now - self._clock, 1e-9)
        outcomes = self.loop.take_outcomes()
        values = {name: total / number for name, (total, number) in self._sums.items()} | {
            "episodes": outcomes["episodes"],
            "episode_success": outcomes["successes"] / max(outcomes["episodes"], 1),
            "steps_per_s": (self.loop.all_steps - self._clock_step) / seconds,
            "updates_per_s": count / seconds,
            "seconds": seconds,
        }
        if len(self.loop.stages) > 1:
            values |= {"stage": float(self.loop.stage), "uncharged_steps": float(self.loop.uncharged)}
        self._sums, self._clock, self._clock_step = {}, now, self.loop.all_steps
        self.recorder.metrics(self.loop.step, values)
        self.display.progress(self.loop.step, values)

    def _sum_up(self) -> None:
        """Add the metrics of the last updates to the sums; this waits for updates that are still running."""
        for metrics in self._updates:
            for name, value in [*metrics.items(), ("updates", 1.0)]:
                total, count = self._sums.get(name, (0.0, 0))
                self._sums[name] = [total + value, count + 1]  # not every update has every metric
        self._updates = []

    def _evaluate(self) -> None:
        results = evaluate_learner(self.loop.learner, self.config, self.tasks, self.loop.step)
        records = {name: summary._asdict() for name, summary in results.items()}
        self.recorder.evaluation(self.loop.step, records)
        self.display.evaluation(self.loop.step, records)
        self.folder.save_weights(self.loop.step, self.loop.learner.weights())

    def _save(self) -> None:
        self._sum_up()
        state = {"loop": self.loop.state_dict(), "sums": dict(self._sums), "recorder": self.recorder.position()}
        self.folder.save_checkpoint(self.loop.all_steps, state)
        self._saved = self.loop.all_steps


def train(
    config: RunConfig,
    out: Path,
    display: Display | None = None,
    stop: Stop | None = None,
    track: Library | None = None,
) -> bool:
    """Train in the folder ``out``, continuing what it holds; False if the run was stopped early.

    ``stop`` may be set by the caller; without one, Ctrl-C and SIGTERM save and stop. The folder keeps the configuration
    as it was requested; what the environment does not support is off, and the display says so. ``track`` names a
    library that all records are sent to as well.
    """
    # Refuse what cannot run before anything is written.
    agent_kind(config.agent)
    if track is not None:
        need_library(track)
    family = find_family(config.env)
    tasks = family.training_tasks(config.world, config.tasks, config.seed) if config.tasks else None
    spec = family.spec(config.world, tasks)
    used, notes = supported(config, spec)
    notes += [note for note in (family.how_stepped(config.world, tasks), family.caveat()) if note]
    if config.steps <= config.learning.learning_starts:
        notes.append(f"nothing will be learned: learning starts after {config.learning.learning_starts:,} steps")
    display = display or Silence()
    listen = stop is None
    stop = stop or Stop()
    with RunFolder(out, config) as folder, tracking(track, out, config) as tracker:
        for note in notes:
            display.say(note)
        run = Run(used, tasks, spec, folder, display, tracker)
        with closing(run.recorder):
            try:
                if listen:
                    with stop.listening():
                        return run.go(stop)
                return run.go(stop)
            except NotFiniteError as error:
                raise ValueError(
                    f"training ended at step {run.loop.step:,}: {error}; what was saved before is intact"
                ) from error
