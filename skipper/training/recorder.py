"""Records of a run: JSON lines, mirrored to TensorBoard and, where asked for, to a tracker."""

import json
import os
from pathlib import Path
from typing import Any, TextIO

from skipper.training.tracking import Tracker

EVALUATIONS, METRICS = "evaluations.jsonl", "metrics.jsonl"


def read_records(path: Path, name: str) -> list[dict[str, Any]]:
    """The records in one of the files of a run folder, oldest first."""
    try:
        return [json.loads(line) for line in (path / name).read_text(encoding="utf-8").splitlines()]
    except FileNotFoundError:
        if not (path / "config.json").exists():
            raise ValueError(f"{path} is not a run folder: it has no config.json") from None
        raise ValueError(
            f"{path} has no {name}, where `skipper train` records its progress; "
            "`skipper evaluate` measures an agent without it"
        ) from None
    except ValueError:
        raise ValueError(f"{path / name} is damaged: not every line is JSON") from None


def read_evaluations(path: Path) -> list[dict[str, Any]]:
    """The evaluations of the run in a folder, oldest first."""
    records = read_records(path, EVALUATIONS)
    if not records:
        raise ValueError(f"{path} has not been evaluated yet")
    return records


def scalars(name: str, record: dict[str, Any]) -> dict[str, float]:
    """The numbers of a record as charts call them."""
    entries = {key: value for key, value in record.items() if key != "step"}
    if name == EVALUATIONS:
        return {f"success/{key}": summary["success"] for key, summary in entries.items()}
    return {f"training/{key}": value for key, value in entries.items()}


class Recorder:
    """Appends records; a resumed run first drops the records that are newer than its checkpoint.

    ``evaluations.jsonl`` holds no clock times, so that equal runs write equal files.
    """

    def __init__(self, path: Path, position: dict[str, int] | None, step: int) -> None:
        lengths = position or {EVALUATIONS: 0, METRICS: 0}
        if lengths.keys() != {EVALUATIONS, METRICS} or any(type(length) is not int for length in lengths.values()):
            raise ValueError("the checkpoint does not hold the lengths of a run's records")
        for name, length in lengths.items():
            if length and (not (path / name).exists() or (path / name).stat().st_size < length):
                raise ValueError(f"{path / name} is shorter than its checkpoint says; was it edited?")
        self._files: dict[str, TextIO] = {}
        for name, length in lengths.items():
            self._files[name] = open(path / name, "a", encoding="utf-8")  # noqa: SIM115  open for the whole run
            self._files[name].truncate(length)
        self._path, self._step = path, step
        self._board: Any = None
        self._tracker: Tracker | None = None
        self._count = dict.fromkeys(lengths, 0)  # records in each file, where there is a tracker

    def track(self, tracker: Tracker) -> None:
        """Send all records to a tracker from now on, and first those that it has not got yet."""
        self._tracker = tracker
        earlier = [(record["step"], name, record) for name in self._files for record in read_records(self._path, name)]
        for _, name, record in sorted(earlier, key=lambda entry: entry[0]):
            self._send(name, record)

    def evaluation(self, step: int, results: dict[str, dict[str, Any]]) -> None:
        """Record one evaluation of all sets of tasks."""
        self._write(EVALUATIONS, {"step": step, **results})

    def metrics(self, step: int, values: dict[str, float]) -> None:
        """Record losses, throughput and times."""
        self._write(METRICS, {"step": step, **values})

    def position(self) -> dict[str, int]:
        """Lengths of the files, after flushing them to the disk."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        # Not tell(): after a truncation it points beyond the end until something is written.
        return {name: os.fstat(file.fileno()).st_size for name, file in self._files.items()}

    def close(self) -> None:
        """Close all files."""
        for file in self._files.values():
            file.close()
        if self._board is not None:
            self._board.close()

    def _write(self, name: str, record: dict[str, Any]) -> None:
        self._files[name].write(json.dumps(record) + "\n")
        self._files[name].flush()
        self._show(record["step"], scalars(name, record))
        self._send(name, record)

    def _show(self, step: int, values: dict[str, float]) -> None:
        if self._board is None:
            from torch.utils.tensorboard import SummaryWriter  # slow to import

            self._board = SummaryWriter(str(self._path / "tensorboard"), purge_step=self._step)
        for name, value in values.items():
            self._board.add_scalar(name, value, step)

    def _send(self, name: str, record: dict[str, Any]) -> None:
        if self._tracker is not None:
            self._tracker.send(name, self._count[name], record["step"], scalars(name, record))
        self._count[name] += 1
