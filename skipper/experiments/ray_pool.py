"""Runs on a Ray cluster: an actor per run, on any node that has a free core.

Where nodes share the output folder they work in it. Otherwise a run works in a folder of its node; at every new
checkpoint and at its end its files travel to the driver, and from there to the node that goes on with it.
"""

import shutil
import tempfile
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from skipper.experiments.pool import Command, Status, wait_until
from skipper.experiments.works import Work
from skipper.training.state_file import write_atomically

Files = dict[str, bytes]  # contents by paths in the output folder
LOST = 137  # exit code of a run whose node was lost
WAIT = 1.0  # seconds between reports of a run
PATIENCE = 600.0  # seconds in which a run must save its state when it is asked to


class Update(NamedTuple):
    """What a node reports of its run."""

    node: str
    done: int
    code: int | None
    error: str
    wants_files: bool  # it does not share the output folder, and waits for what the driver holds of its run
    files: Files  # new or changed since the last report
    names: list[str]  # of all files that the run has


class Runner:
    """One run on a node."""

    def __init__(self, work: Work, root: str, token: str) -> None:
        self._work, self._root = work, Path(root)
        self._node = ray.get_runtime_context().get_node_id()
        self._shared = (self._root / token).is_file()
        self._sent: dict[str, tuple[int, int]] = {}  # time and size of files when they were sent
        self._command: Command | None = None
        if self._shared:
            self._command = Command(work, self._root)

    def poll(self, seconds: float, files: Files | None = None) -> Update:
        """The state of the run; waits at most this long for its end. With ``files`` it begins, in its own folder."""
        if files is not None:
            self._root = Path(tempfile.mkdtemp(prefix="skipper-"))
            write_files(self._root, files)
            self._sent = {name: _stamp(self._root / name) for name in files}
            self._command = Command(self._work, self._root)
        command = self._command
        if command is None:
            return Update(self._node, 0, None, "", True, {}, [])
        wait_until(lambda: command.code() is not None, seconds)
        code = command.code()
        error, done = command.error() if code else "", self._work.done(self._root)
        changed, names = ({}, []) if self._shared else self._changed(code is not None)
        if code is not None and not self._shared:
            shutil.rmtree(self._root)
        return Update(self._node, done, code, error, False, changed, names)

    def stop(self) -> Update:
        """Let the run save its state and end."""
        if self._command is not None:
            self._command.stop()
        return self.poll(0.0)

    def _changed(self, ended: bool) -> tuple[Files, list[str]]:
        """Files to send: nothing until there is a new checkpoint, then all that changed."""
        paths = {path.relative_to(self._root).as_posix(): path for path in self._work.files(self._root)}
        try:
            stamps = {name: _stamp(path) for name, path in paths.items()}
            new = [name for name in paths if stamps[name] != self._sent.get(name)]
            if not ended and not any("/checkpoints/" in name for name in new):
                return {}, []
            files = {name: paths[name].read_bytes() for name in new}
        except FileNotFoundError:  # an old checkpoint was just deleted; the next report has the new one
            return {}, []
        self._sent = stamps
        return files, list(paths)


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def write_files(root: Path, files: Files) -> None:
    """Write files in the given order, each of them whole or not at all."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda temporary, content=content: temporary.write_bytes(content))


class RayPool:
    """Runs on the nodes of a cluster, with one core each."""

    def __init__(self, root: Path, address: str, shared: bool = True) -> None:
        ray.init(address=address, log_to_driver=False, ignore_reinit_error=True)
        self._root, self._runner = root.resolve(), ray.remote(Runner)
        # A node shares the folder if it sees this file.
        self._token = self._root / f".shared-{uuid.uuid4().hex}"
        if shared:
            self._token.touch()
        self._actors: dict[Work, Any] = {}
        self._nodes: dict[Work, str] = {}  # where each run was last seen
        self._polls: dict[Any, Work] = {}  # reports that are under way

    def slots(self) -> int:
        """Cores of all nodes that are there now."""
        return int(ray.cluster_resources().get("CPU", 0))

    def start(self, work: Work, avoid: str) -> None:
        """Start a run, where possible on another node than ``avoid``."""
        others = [node["NodeID"] for node in ray.nodes() if node["Alive"] and node["NodeID"] != avoid]
        elsewhere = NodeAffinitySchedulingStrategy(others[0], soft=True) if avoid and others else "DEFAULT"
        actor = self._runner.options(num_cpus=1, max_restarts=0, scheduling_strategy=elsewhere).remote(
            work, str(self._root), self._token.name
        )
        self._actors[work] = actor
        self._ask(work)

    def poll(self, seconds: float) -> list[Status]:
        """The reports that arrive in time."""
        if not self._polls:
            wait_until(lambda: False, seconds)
            return []
        ready, _ = ray.wait(list(self._polls), num_returns=len(self._polls), timeout=seconds)
        found = []
        for reference in ready:
            work = self._polls.pop(reference)
            try:
                found.append(self._take(work, ray.get(reference)))
            except RayError as error:
                ray.kill(self._actors.pop(work))  # it may still be there, and nobody hears it
                reason = f"lost with its node ({type(error).__name__})"
                found.append(Status(work, work.done(self._root), self._nodes.get(work, ""), LOST, reason))
        return found

    def stop(self) -> None:
        """Let all runs save their state and end, and take what they saved."""
        # Reports that are under way come first: their files are not sent again.
        asked = self._polls | {actor.stop.remote(): work for work, actor in self._actors.items()}
        ready, _ = ray.wait(list(asked), num_returns=len(asked), timeout=PATIENCE) if asked else ([], [])
        for reference, work in asked.items():
            try:
                if reference in ready:
                    self._receive(work, ray.get(reference))
            except RayError:
                continue  # the node is lost, and what it saved before is here
        self._actors, self._polls = {}, {}

    def close(self) -> None:
        """Leave the cluster."""
        self._token.unlink(missing_ok=True)
        ray.shutdown()

    def _ask(self, work: Work, files: Files | None = None) -> None:
        self._polls[self._actors[work].poll.remote(WAIT, files)] = work

    def _take(self, work: Work, update: Update) -> Status:
        """Keep what a node sent; ask it again unless its run has ended."""
        self._nodes[work] = update.node
        self._receive(work, update)
        if update.code is not None:
            ray.kill(self._actors.pop(work))
        else:
            self._ask(work, self._held(work) if update.wants_files else None)
        return Status(work, max(update.done, work.done(self._root)), update.node, update.code, update.error)

    def _receive(self, work: Work, update: Update) -> None:
        write_files(self._root, update.files)
        if update.files:  # checkpoints that the run has deleted since
            for path in work.files(self._root):
                if path.relative_to(self._root).as_posix() not in update.names:
                    path.unlink()

    def _held(self, work: Work) -> Files:
        """What the driver holds of a run and of what it needs, but not the checkpoints of a finished training."""
        paths = work.files(self._root)
        if work.needs is not None:
            paths = [path for path in work.needs.files(self._root) if path.parent.name != "checkpoints"]
        return {path.relative_to(self._root).as_posix(): path.read_bytes() for path in paths}
