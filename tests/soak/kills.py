"""Kill a training run again and again, and compare what it leaves with a run that nobody interrupted."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from tests.soak.fork_server import ForkedRun, ForkServer

PROGRAM = Path(sys.executable).parent / "skipper"
COMPARED = ("weights.safetensors", "evaluations.jsonl", "config.json")
# Checkpoints are so frequent that many kills fall into the writing of one.
TRAIN = ("train", "--preset", "debug", "--checkpoint-every", "20", "--evaluate-every", "300")
WARM_UP = ("--steps", "240", "--threads", "1")  # long enough to learn; a fork cannot inherit threads
SMALL_GENERATOR = ("--generator-width", "4")
FAST = (
    *("--linear-scores", "--pair-rewarded", "0.5"),
    *("--flat-description", "--learned-goal", "--scaled-start", "--all-pairs", "--other-episodes", "0.2"),
    *("--hindsight-bound", "--delusion-scale", "0.25", "--training-targets", "random", "--act-with-target-network"),
    *("--match-observations", "--symmetries", "--ema-decay", "0.9"),
)
LEAP_FAST = (
    *("--generator-steps", "500", "--linear-scores", "--flat-description", "--scaled-start", "--all-pairs"),
    *("--hindsight-bound", "--training-targets", "random", "--act-with-target-network", "--symmetries"),
    *("--ema-decay", "0.9", "--revisit-penalty", "0.5", "--updater-process", "--threads", "2"),
)
REVISIT = (
    *("--checkpoints", "4", "--match-observations", "--replan", "step", "--revisit-penalty", "0.5"),
    *("--ema-decay", "0.9"),
)

WINDOWS = (
    *("--window-episodes", "4", "--window-endings", "0.5", "--return-bound", "--act-with-target-network"),
    *("--symmetries", "--ema-decay", "0.99", "--linear-scores", "--window-rewarded", "0.5"),
)
SLIP = ("--slip", "0.2", "--no-hindsight-bound", "--independent-targets", "--distance-distributions", "--multistep")


class Setting(NamedTuple):
    """A run to be killed."""

    options: tuple[str, ...]
    steps: int

    def command(self, out: Path) -> list[str]:
        """The arguments of ``skipper`` that train in the folder ``out``."""
        return [*TRAIN, *self.options, "--steps", str(self.steps), "--out", str(out)]


# The slowest first: the soak test works through the table with several processes.
SETTINGS = {
    "skipper-regen, fast, updater process": Setting(
        ("--agent", "skipper-regen", *SMALL_GENERATOR, *FAST, "--updater-process", "--threads", "2"), 1000
    ),
    "skipper-once": Setting(("--agent", "skipper-once", *SMALL_GENERATOR), 1000),
    "skipper-regen": Setting(("--agent", "skipper-regen", *SMALL_GENERATOR), 1000),
    "skipper-goal": Setting(("--agent", "skipper-goal", *SMALL_GENERATOR), 1000),
    "skipper-regen, revisit penalty": Setting(("--agent", "skipper-regen", *SMALL_GENERATOR, *REVISIT), 1000),
    "skipper-once, fast, slip": Setting(("--agent", "skipper-once", *SMALL_GENERATOR, *FAST, *SLIP), 1000),
    "leap": Setting(("--agent", "leap", *SMALL_GENERATOR, "--generator-steps", "500"), 500),
    "leap-suppress, fast": Setting(("--agent", "leap-suppress", *SMALL_GENERATOR, *LEAP_FAST), 500),
    "director": Setting(("--agent", "director"), 600),
    "modelfree": Setting(("--agent", "modelfree"), 2000),
    "modelfree, endless tasks": Setting(("--agent", "modelfree", "--tasks", "0", "--symmetries"), 2000),
    "modelfree, windows": Setting(("--agent", "modelfree", *WINDOWS), 2000),
    "modelfree, slip": Setting(("--agent", "modelfree", "--slip", "0.2", "--no-prioritized"), 2000),
}


def warm_up_commands(settings: Iterable[Setting]) -> list[list[str]]:
    """Short runs, without a folder, that import and compile everything that these settings need."""
    return [[*TRAIN, *setting.options, *WARM_UP] for setting in settings]


def start_command(arguments: list[str]) -> "subprocess.Popen[bytes]":
    """Start the installed command in a session of its own."""
    return subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.DEVNULL, start_new_session=True)


def newest_step(run_folder: Path) -> int:
    """The step of the newest checkpoint, or -1 where there is none."""
    names = (path.stem for path in run_folder.glob("checkpoints/step-*.safetensors"))
    return max((int(name.removeprefix("step-")) for name in names), default=-1)


def differing_bytes(one: Path, other: Path) -> int:
    """Bytes in which the results of two runs differ."""
    total = 0
    for name in COMPARED:
        a, b = (one / name).read_bytes(), (other / name).read_bytes()
        total += sum(x != y for x, y in zip(a, b, strict=False)) + abs(len(a) - len(b))
    return total


class KillTest:
    """Kills at random moments of one setting's runs, in ``folder``."""

    def __init__(self, setting: Setting, server: ForkServer, folder: Path, seed: int) -> None:
        self._setting, self._server, self._folder = setting, server, folder
        self._moments = random.Random(seed)
        self._start_seconds = 0.0  # from the start of a forked run to its first new checkpoint
        self.kills = self.differing = 0

    def run(self, kills: int, killed: Callable[[], None] = lambda: None) -> None:
        """Kill runs ``kills`` times, calling ``killed`` each time; then let the last one end, and compare."""
        reference = self._folder / "reference"
        _check_exit(start_command(self._setting.command(reference)).wait(), 0)
        rounds = 0
        while self.kills < kills:  # a run that ends before all kills is compared, and another one begins
            rounds += 1
            out = self._folder / f"killed-{rounds}"
            while self.kills < kills and self._kill_once(out, kills):
                killed()
            _check_exit(self._server.start(*self._setting.command(out)).wait(), 0)
            self.differing += differing_bytes(reference, out)

    def _kill_once(self, out: Path, kills: int) -> bool:
        """Start or resume the run in ``out`` and kill it; False where it ended before."""
        command = self._setting.command(out)
        # The first kill hits the installed command itself, all others forks.
        process = start_command(command) if self.kills == 0 else self._server.start(*command)
        if self.kills % 4 == 3:  # while it starts
            time.sleep(self._moments.uniform(0.0, self._start_seconds))
        else:  # at any step, and often while a checkpoint is written
            self._wait_for_progress(process, out, 3 * self._setting.steps // (2 * kills))
            time.sleep(self._moments.uniform(0.0, 0.06))
        process.send_signal(signal.SIGKILL)
        _wait_for_group(process)
        if process.returncode != 0:
            _check_exit(process.returncode, -signal.SIGKILL)
            self.kills += 1
        return process.returncode != 0

    def _wait_for_progress(self, process: "ForkedRun | subprocess.Popen[bytes]", out: Path, steps: int) -> None:
        """Wait for a new checkpoint, up to ``steps`` after the last one, so that kills spread over the run."""
        begin, before = time.monotonic(), newest_step(out)
        wanted = before + self._moments.randint(1, max(1, steps))
        first = None
        while process.poll() is None and (step := newest_step(out)) < wanted:
            if first is None and step > before:
                first = time.monotonic()
            time.sleep(0.002)
        self._start_seconds = (first or time.monotonic()) - begin


def _wait_for_group(process: "ForkedRun | subprocess.Popen[bytes]") -> None:
    """Wait until every process of the run has ended: an updater must notice that its run is gone."""
    process.wait()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    raise AssertionError("a process outlived the run that started it")


def _check_exit(code: int, wanted: int) -> None:
    assert code == wanted, f"a run ended with exit code {code} instead of {wanted}"
