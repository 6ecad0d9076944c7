"""Files that detect damage: nested states in safetensors, with a digest of their whole content.

A state is a tree of dictionaries whose leaves are arrays or JSON values. Arrays become tensors of the file; the tree,
with tensor names in place of arrays, and the digest go into its header. Nothing is ever unpickled.
"""

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from skipper.types import Array

_ARRAY = "$array"
_HEADER = "skipper"  # a single metadata entry: with several, their order in the file would not be fixed


class DamagedFileError(ValueError):
    """A file is torn, was changed, or holds something else than its name says."""


def write_state(path: Path, kind: str, state: dict[str, Any]) -> None:
    """Write a state atomically: after any interruption, either all of it is there or nothing."""
    arrays: dict[str, Array] = {}
    tree = json.dumps(_split(state, "", arrays), sort_keys=True, allow_nan=False)
    header = json.dumps({"kind": kind, "digest": _digest(kind, tree, arrays), "tree": tree})
    write_atomically(path, lambda temporary: _save(arrays, temporary, header))


def read_state(path: Path, kind: str) -> dict[str, Any]:
    """Read a state, or raise an error of one line that says why it cannot be trusted."""
    try:
        header, arrays = _load(path)
        found, tree = header["kind"], header["tree"]
        if found != kind:
            raise DamagedFileError(f"{path} holds {found!r}, not {kind!r}")
        if header["digest"] != _digest(kind, tree, arrays):
            raise DamagedFileError(f"{path} is damaged: its content does not match its checksum")
        state = _join(json.loads(tree), arrays)
        if not isinstance(state, dict):
            raise DamagedFileError(f"{path} holds no state")
        return state
    except DamagedFileError:
        raise
    except FileNotFoundError:
        raise DamagedFileError(f"{path} does not exist") from None
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedFileError(f"{path} cannot be read: {type(error).__name__}") from None


def write_atomically(path: Path, write: Any) -> None:
    """Let ``write`` fill a temporary file beside ``path``, push it to the disk, and only then give it its name."""
    temporary = path.with_name(f".{path.name}.partial")
    try:
        write(temporary)
        mask = os.umask(0)  # the only way to ask for it
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _save(arrays: dict[str, Array], path: Path, header: str) -> None:
    try:
        save_file(arrays, path, metadata={_HEADER: header})
    except SafetensorError as error:  # how it reports a full disk
        raise OSError(f"{path.parent} cannot be written: {error}") from None


def _load(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    with safe_open(path, framework="numpy") as file:
        header = json.loads((file.metadata() or {})[_HEADER])
        return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  not a dictionary


def _split(state: Any, path: str, arrays: dict[str, Array]) -> Any:
    if isinstance(state, dict):
        return {name: _split(value, f"{path}/{name}", arrays) for name, value in state.items()}
    if isinstance(state, np.ndarray):
        assert path not in arrays, f"two arrays would share the name {path!r}"
        arrays[path] = np.asarray(state, order="C")
        return {_ARRAY: path}
    return state


def _join(tree: Any, arrays: dict[str, Array]) -> Any:
    if isinstance(tree, dict):
        if tree.keys() == {_ARRAY}:
            return arrays[tree[_ARRAY]]
        return {name: _join(value, arrays) for name, value in tree.items()}
    return tree


def array_digest(arrays: dict[str, Array], heading: str = "") -> str:
    """64 hexadecimal digits of the names and contents of arrays, and of a text before them."""
    digest = hashlib.sha256(heading.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.asarray(array, order="C").reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _digest(kind: str, tree: str, arrays: dict[str, Array]) -> str:
    return array_digest(arrays, f"{kind}\n{tree}\n")
