"""The live table of an experiment's runs."""

import time
from collections import Counter
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table

from skipper.experiments.execute import Progress, State

SHOWN: tuple[State, ...] = ("running", "failed", "waiting", "finished")  # in this order, as far as there is room
MARGIN = 8  # lines of the terminal that are not for rows
OTHER_COLUMNS = 56  # width of the table beside the names of the runs


def duration(seconds: float | None) -> str:
    """A time span for readers: 40 s, 12 min, 3.5 h, 2.1 d."""
    if seconds is None:
        return "?"
    for size, unit, digits in ((86_400, "d", 1), (3_600, "h", 1), (60, "min", 0)):
        if seconds >= size:
            return f"{seconds / size:.{digits}f} {unit}"
    return f"{seconds:.0f} s"


class LiveTable:
    """A row per run with its progress and the time left; without a terminal, only lines are printed."""

    def __init__(self, slots: int, console: Console | None = None) -> None:
        self._console, self._slots, self._began = console or Console(), max(slots, 1), time.monotonic()
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._done_before: int | None = None

    def __enter__(self) -> "LiveTable":
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def say(self, text: str) -> None:
        """Print one line above the table."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def show(self, runs: Sequence[Progress]) -> None:
        """Redraw the table."""
        if self._console.is_terminal:
            self._live.update(self._table(runs), refresh=True)

    def _table(self, runs: Sequence[Progress]) -> Table:
        states = Counter(run.state for run in runs)
        counts = ", ".join(f"{states[state]} {state}" for state in SHOWN if states[state])
        title = f"{counts}; {duration(time.monotonic() - self._began)} so far, {duration(self._left(runs))} left"
        table = Table("run", "state", "progress", "left", "node", title=title)
        width = max(self._console.width - OTHER_COLUMNS, 12)
        ordered = sorted(runs, key=lambda run: SHOWN.index(run.state))
        room = max(self._console.height - MARGIN, 1)
        for run in ordered[:room]:
            steps = f"{run.done:,} / {run.work.total:,}" if run.work.total > 1 else ""
            left = duration(run.seconds_left) if run.state == "running" else ""
            name = run.work.name if len(run.work.name) <= width else run.work.name[: width - 1] + "…"
            table.add_row(name, run.state, steps, left, run.node[:8])
        if len(ordered) > room:
            table.add_row(f"... and {len(ordered) - room} more", "", "", "", "")
        return table

    def _left(self, runs: Sequence[Progress]) -> float | None:
        """Time left: steps of training at the speed so far, and evaluations as long as those before."""
        trainings = [run for run in runs if run.work.total > 1]
        wanted = sum(run.work.total - run.done for run in trainings if run.state in ("waiting", "running"))
        done = sum(run.done for run in trainings)
        self._done_before = done if self._done_before is None else self._done_before
        gained = done - self._done_before
        if wanted and not gained:
            return None
        training = wanted * (time.monotonic() - self._began) / gained if wanted else 0.0
        evaluations = [run for run in runs if run.work.total == 1]
        known = [run.seconds for run in evaluations if run.seconds]
        to_do = sum(run.state in ("waiting", "running") for run in evaluations)
        return training + (to_do * sum(known) / len(known) / self._slots if known else 0.0)
