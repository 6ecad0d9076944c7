"""The live display of a training run."""

import time
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

REFRESH = 0.2  # seconds


class ProgressDisplay:
    """A bar with steps, speed and time left, and a line of success rates per evaluation.

    Without a terminal, only lines are printed.
    """

    def __init__(self, steps: int, console: Console | None = None) -> None:
        self._console = console or Console()
        self._progress = Progress(
            TextColumn("{task.completed:>9,.0f} / {task.total:,.0f} steps"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[loss]}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._progress.add_task("", total=steps, speed="", loss="")
        self._shown = 0.0

    def __enter__(self) -> "ProgressDisplay":
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._progress.stop()

    def say(self, text: str) -> None:
        """Print one line above the bar."""
        self._progress.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def progress(self, step: int, metrics: dict[str, float]) -> None:
        """Update the bar; it is redrawn at most every ``REFRESH`` seconds."""
        if metrics:
            loss = f"loss {metrics['loss']:.4f}" if "loss" in metrics else ""
            self._progress.update(self._task, speed=f"{metrics['steps_per_s']:,.0f} steps/s", loss=loss)
        if time.monotonic() - self._shown > REFRESH:
            self._shown = time.monotonic()
            self._progress.update(self._task, completed=step)

    def evaluation(self, step: int, results: dict[str, dict[str, Any]]) -> None:
        """Print the newest success rates."""
        rates = "  ".join(f"{name} {row['success']:.2f}" for name, row in results.items())
        self.say(f"step {step:>9,} success {rates}")  # 80 columns for the lava world
        self._progress.update(self._task, completed=step)
