"""The updates of the estimators in a second process, while this one acts, prepares batches and updates generators.

Acting and preparing batches use only the target network, so nothing here needs the online estimators until the next
target update. Both processes call the functions of ``Updater``, and the result is the same as in one process.
"""

import os
import pickle
import signal
import subprocess
import sys
import traceback
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skipper.agents.hindsight import UpdateBatch, Updater, UpdateResult, all_metrics
from skipper.agents.target_config import TargetRunConfig
from skipper.config import WorldConfig
from skipper.runtime.threads import configure_threads, peak_memory_mb
from skipper.types import EnvironmentSpec, parts_of

BATCHES_AHEAD = 4  # enough to keep the other process busy, few enough to keep it close behind


class PendingMetrics(Mapping[str, float]):
    """Metrics of an update that may still be running in the other process; reading them waits for it."""

    def __init__(self, estimated: Future[UpdateResult], generated: dict[str, float]) -> None:
        self._estimated, self._generated = estimated, generated

    def _all(self) -> dict[str, float]:
        return all_metrics(self._estimated.result().metrics, self._generated)

    def __getitem__(self, name: str) -> float:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


class UpdaterProcess:
    """Has the interface of ``Updater``; the estimators are updated in a second process, the generators in this one.

    The estimators of ``online`` are out of date until ``synchronise`` copies them back.
    """

    def __init__(self, updater: Updater[Any], spec: EnvironmentSpec) -> None:
        self._online, self._updater, config = updater.online, updater, updater.config
        self._process = subprocess.Popen(
            # -P: import from where this process imports, not from the working directory.
            [sys.executable, "-P", "-c", "from skipper.agents.update_process import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
        )
        # One thread sends requests and one receives replies, so a request does not wait for the reply before it.
        self._threads = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self._pending: deque[Future[UpdateResult]] = deque()
        self._outdated = False  # whether updates were requested since the last copy of the estimators
        self._finalizer = weakref.finalize(self, _close, self._process, self._threads)
        # The network needs only these fields; the others may not be picklable.
        shape = (spec.shape, spec.vocabulary, spec.actions, spec.longest)
        network_spec = EnvironmentSpec(*shape, examples=spec.examples, parts=parts_of(spec))
        # The world is the environment's own type, which another process may not be able to import.
        world = WorldConfig(max_steps=config.world.max_steps)
        self._request("begin", type(updater), replace(config, world=world), network_spec).result()
        self.restart()

    def update(self, batch: UpdateBatch) -> UpdateResult:
        """Request the update of the estimators and update the generators; losses are not returned."""
        while len(self._pending) >= BATCHES_AHEAD:
            self._pending.popleft().result()
        for_estimators = batch._replace(contexts=None, goals=None)
        estimated = self._request("update", _converted(for_estimators, Tensor, Tensor.numpy))
        self._pending.append(estimated)
        self._outdated = True
        generated = self._updater.update_generators(batch)
        self._online.update_average()
        return UpdateResult(PendingMetrics(estimated, generated), None)

    def synchronise(self) -> None:
        """Wait for all updates and copy the estimators back."""
        if not self._outdated:
            return
        while self._pending:
            self._pending.popleft().result()
        self._online.load_part("estimators", self._request("state").result())
        self._outdated = False

    def restart(self) -> None:
        """Continue from the weights in ``online``."""
        self._pending.clear()
        self._outdated = False
        self._request("load", self._online.state_dict()).result()

    def usage(self) -> tuple[float, float]:
        """Seconds spent on updates in the other process, and its peak memory in MB."""
        seconds, megabytes = self._request("usage").result()
        return seconds, megabytes

    def _request(self, *request: Any) -> Future[Any]:
        sender, receiver = self._threads
        return receiver.submit(_receive, self._process, sender.submit(_send, self._process, request))


def _send(process: "subprocess.Popen[bytes]", request: tuple[Any, ...]) -> None:
    assert process.stdin is not None
    process.stdin.write(_packed(request))
    process.stdin.flush()


def _receive(process: "subprocess.Popen[bytes]", sent: Future[None]) -> Any:
    """Wait for the reply to a request."""
    assert process.stdout is not None
    try:
        sent.result()
        reply = pickle.load(process.stdout)
    except (EOFError, BrokenPipeError, pickle.UnpicklingError):
        raise ChildProcessError(f"the updater process has ended, with exit code {process.wait()}") from None
    if isinstance(reply, Exception):
        raise reply
    return reply


def _close(process: "subprocess.Popen[bytes]", threads: tuple[ThreadPoolExecutor, ...]) -> None:
    """Close the pipes, which ends the process."""
    # The sender first: it may be blocked until the receiver has read the replies before.
    for thread in threads:
        thread.shutdown(cancel_futures=True)
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with suppress(BrokenPipeError):
            pipe.close()
    process.wait()


def serve() -> None:
    """Reply to the requests of an ``UpdaterProcess`` on standard input until it is closed."""
    # Interrupts are meant for the run: it saves, and then closes standard input.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # anything printed goes to standard error
    server = _Server()
    while True:
        try:
            name, *arguments = pickle.load(requests)
        except (EOFError, pickle.UnpicklingError):  # standard input was closed, perhaps in the middle of a request
            return
        try:
            reply = _packed(getattr(server, name)(*arguments))
        except Exception as error:  # raised again in the other process
            reply = _packed_error(error)
        try:
            replies.write(reply)
            replies.flush()
        except BrokenPipeError:
            return


def _packed(message: Any) -> bytes:
    return pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)


def _packed_error(error: Exception) -> bytes:
    """The error with a note of its origin, or its text where it cannot be pickled."""
    error.add_note(traceback.format_exc())
    try:
        return _packed(error)
    except Exception:
        return _packed(RuntimeError(repr(error)))


class _Server:
    """One method per request."""

    updater: Updater[Any]
    seconds = 0.0

    def begin(self, kind: type[Updater[Any]], config: TargetRunConfig, spec: EnvironmentSpec) -> None:
        configure_threads(config.network_threads)
        self.updater = kind.build(config, spec)

    def load(self, state: dict[str, Any]) -> None:
        self.updater.online.load_state_dict(state)

    def state(self) -> dict[str, Any]:
        return self.updater.online.state_dict()

    def update(self, arrays: Any) -> UpdateResult:
        begin = perf_counter()
        result = self.updater.update_estimators(_converted(arrays, np.ndarray, torch.from_numpy))
        self.updater.online.update_average()
        self.seconds += perf_counter() - begin
        return result._replace(losses=None)

    def usage(self) -> tuple[float, float]:
        return self.seconds, peak_memory_mb()


def _converted(value: Any, kind: type, convert: Any) -> Any:
    """Nested named tuples with all values of one type converted: arrays are pickled faster than tensors."""
    if isinstance(value, kind):
        return convert(value)
    if isinstance(value, tuple):
        parts = [_converted(part, kind, convert) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value
