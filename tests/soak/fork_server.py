"""Runs of the ``skipper`` command as forks of one process that has imported and compiled everything.

A forked run starts in a fraction of a second instead of several. It goes through the same ``main`` as the command, has
a session of its own, and ends as any interpreter does.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class ForkedRun:
    """A forked run, with the part of ``subprocess.Popen`` that the tests use."""

    def __init__(self, server: "ForkServer", pid: int) -> None:
        self._server, self.pid = server, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, or None while the run goes on; a negative code is the signal that ended it."""
        if self.returncode is None:
            self.returncode = self._server.request("poll", self.pid)
        return self.returncode

    def wait(self) -> int:
        """Wait for the end, and return the exit code."""
        if self.returncode is None:
            self.returncode = self._server.request("wait", self.pid)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the run has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


class ForkServer:
    """The warm process, which starts and reaps runs; ``warm_up`` are the command lines that it runs once before."""

    def __init__(self, warm_up: list[list[str]]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.soak.fork_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        self._runs: list[ForkedRun] = []
        self.request("warm up", *warm_up)

    def start(self, *arguments: str) -> ForkedRun:
        """Start ``skipper`` with these arguments."""
        run = ForkedRun(self, self.request("start", *arguments))
        self._runs.append(run)
        return run

    def request(self, *request: Any) -> Any:
        """Send a request to the server, and wait for its reply."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        reply = self._process.stdout.readline()
        if not reply:
            raise ChildProcessError(f"the fork server has ended with exit code {self._process.wait()}")
        return json.loads(reply)

    def close(self) -> None:
        """End all runs that are left, and the server."""
        for run in self._runs:
            run.send_signal(signal.SIGKILL)
            run.wait()
        with self._process:  # closes the pipes, at which the server ends
            pass


def serve() -> list[str]:
    """Answer requests until the input ends; returns the arguments of its run in a forked process only."""
    requests, replies = os.fdopen(os.dup(0), "r"), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    while line := requests.readline():
        name, *arguments = json.loads(line)
        if name == "warm up":
            reply = warm_up(arguments)
        elif name == "start":
            reply = os.fork()
            if reply == 0:
                os.setsid()
                os.close(requests.fileno())
                os.close(replies.fileno())
                return arguments
        else:
            pid, status = os.waitpid(arguments[0], os.WNOHANG if name == "poll" else 0)
            reply = os.waitstatus_to_exitcode(status) if pid else None
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
    os._exit(0)


def warm_up(commands: list[list[str]]) -> None:
    """Run commands to their ends, so that forks inherit all imports and compiled functions."""
    for command in commands:
        with tempfile.TemporaryDirectory() as folder:
            skipper(*command, "--out", folder)


def skipper(*arguments: str) -> None:
    """What the installed command does."""
    from skipper.cli import main

    sys.argv = ["skipper", *arguments]
    main()


if __name__ == "__main__":
    skipper(*serve())
