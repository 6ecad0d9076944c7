"""A training run from its configuration to its folder: resumable at any moment, and watched without noticing."""

import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import numpy as np

from skipper.agents.optimizer import NotFiniteError
from skipper.agents.registry import learner_kind
from skipper.config import RunConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import Tasks, TaskStream, training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.runtime.threads import configure_threads
from skipper.training.evaluate import evaluate_learner
from skipper.training.loop import Loop
from skipper.training.recorder import Recorder
from skipper.training.run_folder import RunFolder


class Display(Protocol):
    """Shows a run to whoever waits for it."""

    def say(self, text: str) -> None:
        """One line."""

    def progress(self, step: int, metrics: dict[str, float]) -> None:
        """How far the run is."""

    def evaluation(self, step: int, results: dict[str, dict[str, Any]]) -> None:
        """New success rates."""


class Silence:
    """A display for nobody."""

    def say(self, text: str) -> None:
        """Nothing."""

    def progress(self, step: int, metrics: dict[str, float]) -> None:
        """Nothing."""

    def evaluation(self, step: int, results: dict[str, dict[str, Any]]) -> None:
        """Nothing."""


class Stop:
    """Whether someone asked the run to end: Ctrl-C or SIGTERM set it, the run looks at it between steps."""

    def __init__(self) -> None:
        self.asked = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen for signals meanwhile."""

        def hear(_number: int, _frame: FrameType | None) -> None:
            self.asked = True

        before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class Run:
    """A run under way: the loop, and what is measured, recorded and saved around it."""

    def __init__(self, config: RunConfig, folder: RunFolder, display: Display) -> None:
        self.config, self.folder, self.display = config, folder, display
        configure_threads(config.network_threads)
        learner = learner_kind(config.agent).train(config, environment_spec(config.world))
        self.tasks: Tasks | None = training_tasks(config.world, config.tasks, config.seed) if config.tasks else None
        envs = LavaVectorEnv(config.environments, tasks=self.tasks or TaskStream(config.world))
        env_seed = int(np.random.default_rng([config.seed, *b"environments"]).integers(2**32))
        self.loop = Loop(learner, envs, config.learning, env_seed)
        self._updates: list[Mapping[str, float]] = []  # metrics that were not looked at yet
        self._sums: dict[str, Any] = {}  # total and number of each metric since the last record
        self._saved = -1  # environment steps of all stages at the newest checkpoint
        self.recorder = self._restore()
        self._clock, self._clock_step = time.monotonic(), self.loop.all_steps

    def _restore(self) -> Recorder:
        """Continue from the newest good checkpoint, if there is one."""
        recorders: list[Recorder] = []

        def restore(state: dict[str, Any]) -> None:
            self.loop.load_state_dict(state["loop"])
            self._sums = state["sums"]
            recorders.append(Recorder(self.folder.path, state["recorder"], self.loop.step))

        found, refused = self.folder.restore_latest(restore)
        for reason in refused:
            self.display.say(f"refused: {reason}; the checkpoint before it is used")
        if not found:
            return Recorder(self.folder.path, None, 0)
        self._saved = self.loop.all_steps
        self.display.say(f"continuing at step {self.loop.step:,}")
        return recorders[-1]

    def go(self, stop: Stop) -> bool:
        """Train to the end or until asked to stop; True at the end."""
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
        """Whether a multiple of ``every`` or the end was just passed."""
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
        """Add the metrics of the last updates to those before; here updates that are still under way are waited for."""
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


def train(config: RunConfig, out: Path, display: Display | None = None, stop: Stop | None = None) -> bool:
    """Train in the folder ``out``, from where an earlier process left it; False where it was asked to stop early.

    ``stop`` may be set by the caller; without one, Ctrl-C and SIGTERM save and leave.
    """
    learner_kind(config.agent)  # an unknown agent is refused before anything is written
    display = display or Silence()
    listen = stop is None
    stop = stop or Stop()
    with RunFolder(out, config) as folder:
        run = Run(config, folder, display)
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
