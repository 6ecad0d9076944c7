"""Processes that run ``skipper`` commands: one thread each, as many at a time as there are cores."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from skipper.experiments.works import LOGS, Work

THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
LAST_LINES = 3  # of a log, that say why a command failed
_DEATH_OF_PARENT = 1  # PR_SET_PDEATHSIG of Linux
_SYSTEM = ctypes.CDLL(None) if sys.platform == "linux" else None


class Status(NamedTuple):
    """What is known of a run that was started."""

    work: Work
    done: int
    node: str
    code: int | None = None  # exit code, once it ended; another than 0 also if its node was lost
    error: str = ""


class Pool(Protocol):
    """Where runs are made."""

    def slots(self) -> int:
        """How many runs there is room for at the same time."""

    def start(self, work: Work, avoid: str) -> None:
        """Start a run, rather not on the node ``avoid``."""

    def poll(self, seconds: float) -> list[Status]:
        """The state of all runs; waits at most this long for one to end. Runs that ended are reported once."""

    def stop(self) -> None:
        """Let all runs save their state and end."""

    def close(self) -> None:
        """Leave nothing behind."""


class Command:
    """A ``skipper`` command in a process of its own, which saves and ends when this process dies."""

    def __init__(self, work: Work, root: Path) -> None:
        self._log = root / LOGS / f"{work.name}.log"
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "skipper", *work.command(root)],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | THREADS,
                start_new_session=True,  # Ctrl-C is for the driver, which asks its runs to save
                preexec_fn=_end_with_parent,
            )

    def code(self) -> int | None:
        """Its exit code, once it ended."""
        return self.process.poll()

    def error(self) -> str:
        """The last lines of its output."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-LAST_LINES:])

    def stop(self) -> None:
        """Let it save its state, and wait until it has ended."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()


def _end_with_parent() -> None:
    """Called in the new process: a run that nobody follows any more must not keep its folder locked."""
    if _SYSTEM is not None:
        _SYSTEM.prctl(_DEATH_OF_PARENT, signal.SIGTERM)


class LocalPool:
    """Runs on this machine."""

    def __init__(self, root: Path, cores: int | None = None) -> None:
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self._root, self._cores = root, cores or available or 1
        self.running: dict[Work, Command] = {}

    def slots(self) -> int:
        """The number of cores."""
        return self._cores

    def start(self, work: Work, avoid: str) -> None:
        """Start a run; there is only one node."""
        self.running[work] = Command(work, self._root)

    def poll(self, seconds: float) -> list[Status]:
        """The state of all runs."""
        wait_until(lambda: any(command.code() is not None for command in self.running.values()), seconds)
        found = []
        for work, command in list(self.running.items()):
            code = command.code()
            error = command.error() if code else ""
            found.append(Status(work, work.done(self._root), "here", code, error))
            if code is not None:
                del self.running[work]
        return found

    def stop(self) -> None:
        """Let all runs save their state and end."""
        for command in self.running.values():
            command.process.terminate()
        for command in self.running.values():
            command.stop()
        self.running = {}

    def close(self) -> None:
        """End what is still running."""
        self.stop()


def wait_until(ready: Callable[[], bool], seconds: float) -> None:
    """Wait until ``ready``, at most this long."""
    end = time.monotonic() + seconds
    while not ready() and time.monotonic() < end:
        time.sleep(0.05)
