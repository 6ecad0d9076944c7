"""Makes the runs of experiments: what is finished is skipped, what was interrupted goes on, what failed is retried."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from skipper.experiments.define import missing
from skipper.experiments.pool import Pool, Status
from skipper.experiments.works import Training, Work
from skipper.training.run import Stop

TRIES = 3  # in a row without progress
PAUSE = 10.0  # seconds before the second of them, twice as many before the third: a lost process may hold its folder
POLL = 1.0  # seconds
HISTORY = "history.jsonl"  # every try of every run, in the output folder

State = Literal["waiting", "running", "finished", "failed"]


@dataclass
class Progress:
    """One run of an experiment."""

    work: Work
    state: State = "waiting"
    done: int = 0
    done_before: int = 0  # when its present try began
    began: float = 0.0
    tries: int = 0  # since it last got further
    paused_until: float = 0.0
    node: str = ""
    error: str = ""
    seconds: float = 0.0  # of all its tries

    @property
    def seconds_left(self) -> float | None:
        """Estimate for a running training; None where nothing is known."""
        gained = self.done - self.done_before
        if self.state != "running" or gained <= 0 or not isinstance(self.work, Training):
            return None
        return (time.monotonic() - self.began) * (self.work.total - self.done) / gained


class Display(Protocol):
    """Shows the runs."""

    def say(self, text: str) -> None:
        """Print one line."""

    def show(self, runs: Sequence[Progress]) -> None:
        """Show the state of all runs."""


def execute(works: Sequence[Work], root: Path, pool: Pool, display: Display, stop: Stop) -> list[Progress]:
    """Make all runs that are missing in ``root``; failures are kept for the end and do not stop the rest."""
    runs, wanted = {work.name: Progress(work) for work in works}, set(missing(works, root))
    for run in runs.values():
        if run.work not in wanted:
            run.state, run.done = "finished", run.work.total
    while any(run.state in ("waiting", "running") for run in runs.values()) and not stop.asked:
        _give_up_orphans(runs)
        _start(runs, root, pool)
        for status in pool.poll(POLL):
            run = runs[status.work.name]
            run.done, run.node = max(run.done, status.done), status.node
            if status.code is not None:
                _settle(run, status, root, display)
        display.show(list(runs.values()))
    if stop.asked:
        display.say("stopping: all runs save their state")
        pool.stop()
    return list(runs.values())


def _start(runs: dict[str, Progress], root: Path, pool: Pool) -> None:
    """Start what is ready while there is room: what others wait for comes first, since works are in that order."""
    room = pool.slots() - sum(run.state == "running" for run in runs.values())
    for run in runs.values():
        needs = run.work.needs
        ready = needs is None or (runs[needs.name].state if needs.name in runs else "finished") == "finished"
        if room > 0 and ready and run.state == "waiting" and time.monotonic() >= run.paused_until:
            run.state, run.began = "running", time.monotonic()
            run.done = run.done_before = run.work.done(root)
            pool.start(run.work, avoid=run.node if run.tries else "")
            room -= 1


def _settle(run: Progress, status: Status, root: Path, display: Display) -> None:
    """A try has ended: the run is finished, is tried again, or has failed."""
    seconds = time.monotonic() - run.began
    run.seconds += seconds
    finished = run.work.finished(root)
    # Only tries in a row without saved progress count: nodes may be lost again and again.
    run.tries = 1 if run.work.done(root) > run.done_before else run.tries + 1
    run.paused_until = time.monotonic() + PAUSE * (run.tries - 1)
    run.error = "" if finished else status.error or f"ended early, with exit code {status.code}"
    run.state = "finished" if finished else "failed" if run.tries >= TRIES else "waiting"
    outcome = {"finished": "finished", "waiting": "to be tried again", "failed": "failed"}[run.state]
    display.say(f"{outcome}: {run.work.name}" + (f" ({run.error.splitlines()[-1]})" if run.error else ""))
    record = {"run": run.work.name, "outcome": outcome, "seconds": seconds, "node": run.node, "error": run.error}
    with (root / HISTORY).open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def _give_up_orphans(runs: dict[str, Progress]) -> None:
    """An evaluation cannot be made if its training failed."""
    for run in runs.values():
        needs = run.work.needs
        if run.state != "waiting" or needs is None or needs.name not in runs:
            continue
        if runs[needs.name].state == "failed":
            run.state, run.error = "failed", f"its training {needs.name} failed"


def read_history(root: Path) -> list[dict[str, object]]:
    """Every try of every run that an output folder knows, oldest first."""
    file = root / HISTORY
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
