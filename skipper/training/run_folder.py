"""The run folder, the same for every agent: configuration, records, weights and checkpoints, with one writer."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from filelock import FileLock, Timeout

from skipper.config import RunConfig
from skipper.schema import SCHEMA, content_hash, differences, digest, to_dict
from skipper.training.migrate_state import migrate
from skipper.training.settings import parse_config
from skipper.training.state_file import DamagedFileError, array_digest, read_state, write_atomically, write_state
from skipper.types import Array

CONFIG, WEIGHTS, CHECKPOINTS = "config.json", "weights.safetensors", "checkpoints"
KEPT_WEIGHTS = "weights"  # folder
KEPT = 2  # checkpoints


class Stamp(NamedTuple):
    """A run's configuration, and the identity that its weights and checkpoints carry."""

    config: RunConfig
    run: str
    schema: int


class WeightsIdentity(NamedTuple):
    """Which weights a run folder holds."""

    step: int  # environment steps of their training
    digest: str  # sixteen hexadecimal digits of their content, equal wherever the networks are


class RunFolder:
    """Owns a run folder for writing, one process at a time."""

    def __init__(self, path: Path, config: RunConfig) -> None:
        self.path, self.config = path, config
        self._stamp = Stamp(config, content_hash(config), SCHEMA)
        self._lock = FileLock(path / ".lock", timeout=0)

    def __enter__(self) -> "RunFolder":
        self.path.mkdir(parents=True, exist_ok=True)
        if not os.access(self.path, os.W_OK):
            raise OSError(f"{self.path} cannot be written")
        try:
            self._lock.acquire()
        except Timeout:
            raise ValueError(f"{self.path} is in use by another process") from None
        try:
            self._claim()
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _claim(self) -> None:
        """Write the configuration into a new folder; an existing one must hold the same."""
        if not (self.path / CONFIG).exists():
            # A process may have died between making the folder and writing its configuration.
            foreign = {path.name for path in self.path.iterdir()} - {".lock", f".{CONFIG}.partial"}
            if foreign:
                raise ValueError(
                    f"{self.path} is no run folder and not empty (it holds {min(foreign)!r}); choose another"
                )
            text = config_text(self.config)
            write_atomically(self.path / CONFIG, lambda temporary: temporary.write_text(text, encoding="utf-8"))
        self._stamp = read_stamp(self.path)
        if changed := differences(self._stamp.config, self.config):
            raise ValueError(f"{self.path} holds a run with another configuration ({'; '.join(changed)})")
        (self.path / CHECKPOINTS).mkdir(exist_ok=True)
        for torn in (self.path / CHECKPOINTS).glob(".*.partial"):  # left by a process that was killed while writing
            torn.unlink()

    def save_weights(self, step: int, weights: dict[str, Array]) -> None:
        """What acting needs, overwriting older weights; a copy stays where the run keeps all of them."""
        state = {"schema": SCHEMA, "run": self._stamp.run, "step": step, "weights": weights}
        write_state(self.path / WEIGHTS, "weights", state)
        if self.config.evaluation.keep_weights:
            (self.path / KEPT_WEIGHTS).mkdir(exist_ok=True)
            write_state(weights_file(self.path, step), "weights", state)

    def save_checkpoint(self, step: int, state: dict[str, Any]) -> None:
        """All that resuming needs; only the last few are kept."""
        entry = {"schema": SCHEMA, "run": self._stamp.run, "step": step, "state": state}
        write_state(self._checkpoint(step), "checkpoint", entry)
        for old in sorted((self.path / CHECKPOINTS).glob("step-*.safetensors"))[:-KEPT]:
            old.unlink()

    def restore_latest(self, restore: Callable[[dict[str, Any]], None]) -> tuple[bool, list[str]]:
        """Hand the newest checkpoint that can be trusted to ``restore``.

        Returns whether there was one, and why newer ones were refused; those are renamed, so that they do not
        outlive the good ones. Where all are refused nothing is touched.
        """
        refused: dict[Path, str] = {}
        for path in sorted((self.path / CHECKPOINTS).glob("step-*.safetensors"), reverse=True):
            try:
                restore(self._read_checkpoint(path))
            except DamagedFileError as error:
                refused[path] = str(error)
            except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
                refused[path] = f"{path} does not fit this version of the program ({type(error).__name__})"
            else:
                for old in refused:
                    old.rename(old.with_suffix(".refused"))
                return True, list(refused.values())
        if refused:
            raise DamagedFileError(f"no checkpoint can be used: {'; '.join(refused.values())}")
        return False, []

    def _read_checkpoint(self, path: Path) -> dict[str, Any]:
        entry = read_state(path, "checkpoint")
        schema = entry.pop("schema", 1)  # the first schema had no number
        _check_entry(path, "checkpoint", entry, {"run": str, "step": int, "state": dict})
        if entry["run"] != self._stamp.run:
            raise DamagedFileError(f"{path} belongs to another run")
        if path != self._checkpoint(entry["step"]):
            raise DamagedFileError(f"{path} is the checkpoint of step {entry['step']} under another name")
        return migrate(entry["state"], schema)

    def _checkpoint(self, step: int) -> Path:
        return self.path / CHECKPOINTS / f"step-{step:012d}.safetensors"


def read_config(path: Path) -> RunConfig:
    """The configuration of the run in a folder, of any version."""
    return read_stamp(path).config


def read_stamp(path: Path) -> Stamp:
    """The configuration and the identity of the run in a folder, of any version."""
    file = path / CONFIG
    try:
        text = file.read_text(encoding="utf-8")
        entry = json.loads(text)
    except FileNotFoundError:
        raise ValueError(f"{path} is not a run folder: it has no {CONFIG}") from None
    except (ValueError, OSError, RecursionError) as error:
        raise DamagedFileError(f"{file} cannot be read: {type(error).__name__}") from None
    if not isinstance(entry, dict) or not {"hash", "config"} <= entry.keys() <= {"schema", "hash", "digest", "config"}:
        raise DamagedFileError(f"{file} is no configuration: it needs 'schema', 'hash', 'digest' and 'config'")
    schema = entry.get("schema", 1)
    if type(schema) is not int or not 1 <= schema <= SCHEMA:
        raise ValueError(f"{file} has schema {schema!r:.20}; this version of the program reads 1 to {SCHEMA}")
    # To the byte: what was edited by hand may not be what its author meant. In schema 1 the hash was the digest.
    covered = entry["config"] if schema == 1 else {"hash": entry["hash"], "config": entry["config"]}
    recorded = entry["hash"] if schema == 1 else entry.get("digest")
    if recorded != digest(covered) or text != _json_text(entry):
        raise DamagedFileError(f"{file} was changed: its content does not match its digest")
    return Stamp(parse_config(entry["config"], schema, str(file)), str(entry["hash"]), schema)


def config_text(config: RunConfig) -> str:
    """What ``config.json`` holds."""
    content = {"hash": content_hash(config), "config": to_dict(config)}
    return _json_text({"schema": SCHEMA, "digest": digest(content), **content})


def _json_text(entry: dict[str, Any]) -> str:
    return json.dumps(entry, indent=2) + "\n"


def weights_file(path: Path, step: int | None = None) -> Path:
    """Where a run folder has its newest weights, or those that it keeps of the evaluation at ``step``."""
    return path / WEIGHTS if step is None else path / KEPT_WEIGHTS / f"step-{step:012d}.safetensors"


def kept_steps(path: Path) -> list[int]:
    """The steps of whose evaluations a run folder keeps the weights."""
    return sorted(int(file.stem.removeprefix("step-")) for file in (path / KEPT_WEIGHTS).glob("step-*.safetensors"))


def read_weights(path: Path, step: int | None = None) -> dict[str, Array]:
    """The weights of the run in a folder, which must be those of its configuration; the newest, or those of a step."""
    weights: dict[str, Array] = _read_weights(path, step)["weights"]
    return weights


def weights_identity(path: Path, step: int | None = None) -> WeightsIdentity:
    """The identity of the weights of the run in a folder."""
    entry = _read_weights(path, step)
    return WeightsIdentity(entry["step"], array_digest(entry["weights"])[:16])


def _read_weights(path: Path, step: int | None) -> dict[str, Any]:
    file = weights_file(path, step)
    if step is not None and not file.exists():
        kept = ", ".join(map(str, kept_steps(path))) or "none; train with --keep-weights"
        raise ValueError(f"{path} does not keep the weights of step {step}; available: {kept}")
    entry = read_state(file, "weights")
    entry.pop("schema", 1)  # parameters have had the same names in all schemas
    _check_entry(file, "weights", entry, {"run": str, "step": int, "weights": dict})
    if entry["run"] != read_stamp(path).run:
        raise DamagedFileError(f"{file} belongs to another run than {path / CONFIG}")
    if step not in (None, entry["step"]):
        raise DamagedFileError(f"{file} holds the weights of step {entry['step']} under another name")
    if not all(isinstance(array, np.ndarray) for array in entry["weights"].values()):
        raise DamagedFileError(f"{file} holds something else than weights")
    return entry


def _check_entry(path: Path, kind: str, entry: dict[str, Any], wanted: dict[str, type]) -> None:
    """Refuse a verified file whose fields are not the wanted ones, of the wanted types."""
    if {name: type(value) for name, value in entry.items()} != wanted:
        raise DamagedFileError(f"{path} does not hold what a {kind} of this version holds")
