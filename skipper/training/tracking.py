"""Records of a run sent to Weights & Biases; a resumed run continues the run that was logged before.

The library has an offline mode (WANDB_MODE=offline) and needs no account in it. What is sent is what the run folder
holds: nothing is read from the learner, so that a run is the same with and without.
"""

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from skipper.config import RunConfig
from skipper.schema import to_dict
from skipper.training.state_file import DamagedFileError

TRACKING = "tracking.json"
PROJECT = "skipper"  # unless the environment variable WANDB_PROJECT names another

Library = Literal["wandb"]


class Tracker:
    """A logged run; it remembers in the run folder which records were already sent."""

    def __init__(self, library: Library, path: Path, config: RunConfig) -> None:
        self._file = path / TRACKING
        state = _read(self._file)
        self._id, self._sent = state["id"], state["sent"]
        self._run = _init(library, path, config, self._id)

    def sent(self, file: str) -> int:
        """How many records of a file were sent."""
        return int(self._sent.get(file, 0))

    def send(self, file: str, number: int, step: int, values: Mapping[str, float]) -> None:
        """Send record ``number`` of a file, unless an earlier process did before it was interrupted."""
        if number < self.sent(file):
            return
        # The library's own counter must rise over all parts of a run; charts are drawn over the environment steps.
        self._run.log({"step": step, **values}, step=sum(self._sent.values()))
        self._sent[file] = number + 1
        temporary = self._file.with_suffix(".partial")
        temporary.write_text(json.dumps({"id": self._id, "sent": self._sent}), encoding="utf-8")
        os.replace(temporary, self._file)

    def close(self) -> None:
        """Wait until everything is sent, or written where there is no connection."""
        self._run.finish()


@contextmanager
def tracking(library: Library | None, path: Path, config: RunConfig) -> Iterator[Tracker | None]:
    """A tracker of the run in the folder ``path``, where a library is named."""
    if library is None:
        yield None
        return
    with closing(Tracker(library, path, config)) as tracker:
        yield tracker


def need_library(library: Library) -> None:
    """Refuse a library that is not installed."""
    if find_spec(library) is None:
        raise ValueError(f"{library} is not installed; install it with: pip install 'skipper-rl[{library}]'")


def _read(file: Path) -> dict[str, Any]:
    """What was sent under which name; a new name where there is none."""
    if not file.exists():
        return {"id": secrets.token_hex(4), "sent": {}}
    try:
        state = json.loads(file.read_text(encoding="utf-8"))
        if not (isinstance(state["id"], str) and all(type(count) is int for count in state["sent"].values())):
            raise ValueError("types")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DamagedFileError(f"{file} is damaged; without it, the run is logged anew under another name") from None
    return {"id": state["id"], "sent": dict(state["sent"])}


def _init(library: Library, path: Path, config: RunConfig, name: str) -> Any:
    """Begin or continue the logged run."""
    need_library(library)
    import wandb

    offline = os.environ.get("WANDB_MODE") in ("offline", "dryrun")
    try:
        run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            name=path.resolve().name,
            id=name,
            resume=None if offline else "allow",  # parts that were logged offline are joined by their common name
            dir=str(path),
            config=to_dict(config),
            settings=wandb.Settings(console="off"),  # the progress bar keeps its terminal
        )
    except wandb.Error as error:
        raise ValueError(f"wandb: {str(error).rstrip('.')}; without a connection, set WANDB_MODE=offline") from error
    run.define_metric("*", step_metric="step")
    return run
