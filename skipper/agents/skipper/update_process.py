"""Skipper's updates: what is learned from a batch_, in this process or in one of its own.

As long as acting, experience and lessons use the target network only, they need nothing of the networks that learn
until the next copy. So these can learn in another process, on another core, and the outcome is the same.
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
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from skipper.agents.learning_core import Online
from skipper.agents.skipper.config import SkipperConfig
from skipper.agents.skipper.update import UpdateBatch
from skipper.agents.skipper.vertices import SkipperNetwork
from skipper.losses import total_loss, weighted_mean
from skipper.nets.estimators import estimator_losses
from skipper.nets.generator import cyclic_weight
from skipper.runtime.threads import configure_threads, peak_memory_mb
from skipper.types import Array, EnvironmentSpec

NO_LOSSES = np.empty(0, np.float32)  # where nothing is drawn by priority, nobody asks for them
BATCHES_AHEAD = 4  # enough that the updater never waits, few enough that it is never far behind


class UpdateResult(NamedTuple):
    """What came of an update."""

    metrics: Mapping[str, float]
    losses: Array  # (P,) of the pairs with real targets, for their priorities


class Updater:
    """Learns from lessons; everything that an update changes is in ``online``."""

    def __init__(self, config: SkipperConfig, online: Online[SkipperNetwork]) -> None:
        self.config, self.online = config, online

    def update(self, batch_: UpdateBatch) -> UpdateResult:
        """One update of estimators and generators."""
        losses, per_pair = self._estimator_losses(batch_)
        generated = self._generator_losses(batch_)
        self.online.update(sum(generated.values(), start=losses["loss"]), batch_.rate)
        return UpdateResult(_together(_numbers(losses), _numbers(generated)), per_pair.detach().numpy())

    def update_estimators(self, batch_: UpdateBatch) -> UpdateResult:
        """One half of an update."""
        losses, per_pair = self._estimator_losses(batch_)
        self.online.update(losses["loss"], batch_.rate)
        return UpdateResult(_numbers(losses), per_pair.detach().numpy())

    def update_generators(self, batch_: UpdateBatch) -> dict[str, float]:
        """The other half; the weights' average goes on also where nothing is learned."""
        generated = self._generator_losses(batch_)
        loss = torch.stack(list(generated.values())).sum() if generated else None
        self.online.update(loss, batch_.rate)
        return _numbers(generated)

    def _estimator_losses(self, batch_: UpdateBatch) -> tuple[dict[str, Tensor], Tensor]:
        """The loss and its parts, and the losses (P,) of the pairs with real targets."""
        network, settings = self.online.network, self.config.learning
        losses = estimator_losses(network.estimators, batch_.batch, batch_.bootstrap, settings, batch_.real)
        delusion = losses["distance"][batch_.real :]
        metrics = losses | {"distance": losses["distance"][: batch_.real]}
        per_pair = total_loss(metrics, dict.fromkeys(metrics, 1.0))
        weights = torch.from_numpy(batch_.samples.weight) if batch_.samples else torch.ones(batch_.real)
        loss = weighted_mean(per_pair, weights)
        if len(delusion):
            metrics["delusion"] = delusion
            # With single samples each has its own imagined target, and its weight covers both.
            scaled = settings.delusion_scale * delusion
            loss = loss + (weighted_mean(scaled, weights) if batch_.samples else scaled.mean())
        return {"loss": loss, "pairs": torch.tensor(float(len(batch_.batch.action)))} | metrics, per_pair

    def synchronise(self) -> None:
        """The networks are here and always the newest."""

    def restart(self) -> None:
        """Whatever is put into them is learned from next."""

    def _generator_losses(self, batch_: UpdateBatch) -> dict[str, Tensor]:
        """What the generators are to learn, which is not weighted by priority (App., "Checkpoint Generator")."""
        losses, network, settings = {}, self.online.network, self.config.generator
        if batch_.contexts is not None:  # the agent's cell of some states, in the context of others of their episodes
            found = network.generator.losses(*batch_.contexts)
            weight = settings.entropy_scale * cyclic_weight(batch_.update, settings.entropy_period)
            losses = {"reconstruction": found["reconstruction"].mean(), "entropy": weight * found["entropy"].mean()}
        if network.goal is not None and batch_.goals is not None and len(batch_.goals[1]):
            losses["goal"] = network.goal.loss(*batch_.goals)  # where the agent was when it was rewarded
        return losses


def _numbers(losses: Mapping[str, Tensor]) -> dict[str, float]:
    return {name: float(loss.detach().mean()) for name, loss in losses.items()}


def _together(estimated: Mapping[str, float], generated: Mapping[str, float]) -> dict[str, float]:
    """The metrics of both halves of an update."""
    return {**estimated, **generated, "loss": estimated["loss"] + sum(generated.values())}


class PendingMetrics(Mapping[str, float]):
    """Metrics of an update of which one half may not be done yet: whoever looks at them waits for it."""

    def __init__(self, estimated: Future[UpdateResult], generated: dict[str, float]) -> None:
        self._estimated, self._generated = estimated, generated

    def _all(self) -> dict[str, float]:
        return _together(self._estimated.result().metrics, self._generated)

    def __getitem__(self, name: str) -> float:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


class UpdaterProcess:
    """A updater of the estimators in a process of its own; the generators, which cost less, are learned here.

    The estimators of ``online`` here are a copy that ``synchronise`` brings up to date. The two halves share no weight.
    """

    def __init__(self, config: SkipperConfig, spec: EnvironmentSpec, online: Online[SkipperNetwork]) -> None:
        self._online, self._generators = online, Updater(config, online)
        self._process = subprocess.Popen(
            # Not the folder that it is started in, but what this process imports from.
            [sys.executable, "-P", "-c", "from skipper.agents.skipper.update_process import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
        )
        # Questions in turn and answers in turn, but the next question does not wait for the last answer.
        self._lines = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self._under_way: deque[Future[UpdateResult]] = deque()
        self._finalizer = weakref.finalize(self, _hang_up, self._process, self._lines)
        shapes = spec._replace(scene=None, oracle=None, symmetries=None)
        self._ask("begin", config, shapes).result()
        self.restart()

    def update(self, batch_: UpdateBatch) -> UpdateResult:
        """One update, some time before the next copy of the networks is asked for; its losses stay there."""
        while len(self._under_way) >= BATCHES_AHEAD:
            self._under_way.popleft().result()
        update = self._ask("update", _converted(batch_._replace(contexts=None, goals=None), Tensor, Tensor.numpy))
        self._under_way.append(update)
        self._news = True
        return UpdateResult(PendingMetrics(update, self._generators.update_generators(batch_)), NO_LOSSES)

    def synchronise(self) -> None:
        """Wait for all updates, and take over what they made of the networks."""
        if not self._news:
            return
        while self._under_way:
            self._under_way.popleft().result()
        self._online.load_part("estimators", self._ask("state").result())
        self._news = False

    def restart(self) -> None:
        """Let the updater go on from the networks as they are here."""
        self._under_way.clear()
        self._news = False
        self._ask("load", self._online.state_dict()).result()

    def usage(self) -> tuple[float, float]:
        """How many seconds it has studied, and the most memory that it held, in MB."""
        seconds, megabytes = self._ask("usage").result()
        return seconds, megabytes

    def _ask(self, *question: Any) -> Future[Any]:
        sending, receiving = self._lines
        return receiving.submit(_receive, self._process, sending.submit(_send, self._process, question))


def _send(process: "subprocess.Popen[bytes]", question: tuple[Any, ...]) -> None:
    assert process.stdin is not None
    process.stdin.write(_packed(question))
    process.stdin.flush()


def _receive(process: "subprocess.Popen[bytes]", sent: Future[None]) -> Any:
    """Wait for the answer to a question."""
    assert process.stdout is not None
    try:
        sent.result()
        answer = pickle.load(process.stdout)
    except (EOFError, BrokenPipeError, pickle.UnpicklingError):
        raise ChildProcessError(f"the process that learns has ended, with exit code {process.wait()}") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _hang_up(process: "subprocess.Popen[bytes]", lines: tuple[ThreadPoolExecutor, ...]) -> None:
    """The process ends when nothing more can come."""
    # Questions first: whoever waits to send one waits until the answers before it were received.
    for line in lines:
        line.shutdown(cancel_futures=True)
    for end in (process.stdin, process.stdout):
        assert end is not None
        with suppress(BrokenPipeError):
            end.close()
    process.wait()


def serve() -> None:
    """Answer the questions of a ``UpdaterProcess`` on standard input, until it is closed."""
    # Whoever interrupts a run means the process that asks; it ends this one when it has saved.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what anyone prints is no answer
    server = _Server()
    while True:
        try:
            name, *arguments = pickle.load(questions)
        except (EOFError, pickle.UnpicklingError):  # nobody asks any more, or died in the middle of a question
            return
        try:
            answer = _packed(getattr(server, name)(*arguments))
        except Exception as error:  # whoever asked is to see it
            answer = _packed_error(error)
        try:
            answers.write(answer)
            answers.flush()
        except BrokenPipeError:
            return


def _packed(answer: Any) -> bytes:
    return pickle.dumps(answer, protocol=pickle.HIGHEST_PROTOCOL)


def _packed_error(error: Exception) -> bytes:
    """The error with a note that says where it came from, or in words where it cannot travel."""
    error.add_note(traceback.format_exc())
    try:
        return _packed(error)
    except Exception:
        return _packed(RuntimeError(repr(error)))


class _Server:
    """The updater's side: one method for each question."""

    updater: Updater
    seconds = 0.0

    def begin(self, config: SkipperConfig, spec: EnvironmentSpec) -> None:
        configure_threads(config.network_threads)
        self.updater = Updater(config, Online(SkipperNetwork(config, spec), config.learning))

    def load(self, state: dict[str, Any]) -> None:
        self.updater.online.load_state_dict(state)

    def state(self) -> dict[str, Any]:
        return self.updater.online.state_dict()

    def update(self, batch_: Any) -> UpdateResult:
        begin = perf_counter()
        update = self.updater.update_estimators(_converted(batch_, np.ndarray, torch.from_numpy))
        self.seconds += perf_counter() - begin
        return update._replace(losses=NO_LOSSES)

    def usage(self) -> tuple[float, float]:
        return self.seconds, peak_memory_mb()


def _converted(value: Any, kind: type, convert: Any) -> Any:
    """Nested named tuples with everything of a kind converted: arrays travel faster than tensors."""
    if isinstance(value, kind):
        return convert(value)
    if isinstance(value, tuple):
        parts = [_converted(part, kind, convert) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value
