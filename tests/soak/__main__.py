"""Many hostile files and kills; the last line is the summary, and the exit code is not 0 where anything went wrong.

Example: python -m tests.soak --kills 200 --files 5000
"""

import argparse
import os
import random
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from queue import SimpleQueue

# Read when libraries load. Runs share the cores, so that threads must not spin while they wait.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from tests.soak.fork_server import ForkServer
from tests.soak.hostile import attack, make_runs
from tests.soak.kills import SETTINGS, KillTest, warm_up_commands

BEGIN = time.monotonic()


def say(text: str) -> None:
    """Print a line of progress."""
    minutes, seconds = divmod(int(time.monotonic() - BEGIN), 60)
    print(f"{minutes:3d}:{seconds:02d}  {text}", flush=True)


def hostile_files(folder: Path, files: int, seed: int) -> Counter[str]:
    """Offer hostile files; counts those that were not refused in one line, by what happened instead."""
    faults: Counter[str] = Counter()
    for number, fault in enumerate(attack(make_runs(folder), folder, files, seed), start=1):
        if fault:
            say(fault)
            faults[fault.split()[0]] += 1
        if number % 500 == 0:
            say(f"{number} of {files} hostile files, {faults.total()} faults")
    return faults


class Kills:
    """Kills of runs with all settings, a share for each."""

    def __init__(self, folder: Path, kills: int, seed: int) -> None:
        self._folder, self._kills, self._seed = folder, kills, seed
        self._servers: SimpleQueue[ForkServer] = SimpleQueue()
        self._lock = threading.Lock()
        self.done = self.differing = self.failures = 0

    def run(self, jobs: int) -> None:
        """Kill runs with all settings, ``jobs`` at a time."""
        share, more = divmod(self._kills, len(SETTINGS))
        shares = [share + (number < more) for number in range(len(SETTINGS))]
        with ThreadPoolExecutor(jobs) as pool, ExitStack() as servers:
            for server in pool.map(lambda _: ForkServer(warm_up_commands(SETTINGS.values())), range(jobs)):
                self._servers.put(servers.enter_context(closing(server)))
            list(pool.map(self._kill, SETTINGS, shares))

    def _kill(self, name: str, kills: int) -> None:
        server = self._servers.get()
        test = KillTest(SETTINGS[name], server, self._folder / name, self._seed)
        try:
            test.run(kills, self._count)
        except Exception:  # the other settings go on
            say(f"{name}: {traceback.format_exc()}")
            self.failures += 1
        finally:
            self._servers.put(server)
        say(f"{name}: {test.kills} kills, {test.differing} differing bytes")
        self.differing += test.differing

    def _count(self) -> None:
        with self._lock:
            self.done += 1
            if self.done % 10 == 0:
                say(f"{self.done} of {self._kills} kills")


def main() -> int:
    """Run the soak test; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="kills of training runs, over all settings")
    parser.add_argument("--files", type=int, default=5000, help="hostile files in run folders")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--seed", type=int, help="decides files and moments; by default a new one every time")
    options = parser.parse_args()
    seed = random.randrange(10**6) if options.seed is None else options.seed
    say(f"{options.files} hostile files and {options.kills} kills, seed {seed}")
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        faults = hostile_files(Path(folder), options.files, seed)
        kills = Kills(Path(folder), options.kills, seed)
        kills.run(options.jobs)
    failed = bool(faults or kills.failures or kills.differing or kills.done < options.kills)
    tracebacks = faults.pop("traceback", 0)
    parts = [f"{kills.done} kills, {kills.differing} differing bytes"]
    parts += [f"{kills.failures} settings FAILED"] if kills.failures else []
    parts += [f"{options.files} hostile files, {tracebacks} tracebacks"]
    parts += [f"{count} {what}" for what, count in faults.items()]
    print("; ".join(parts))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
