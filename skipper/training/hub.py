"""Agents on the Hugging Face Hub: what is needed to act, and a card. Nothing but JSON and safetensors is read."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skipper.training.card import model_card
from skipper.training.pretrained import CARD, HUB
from skipper.training.run_folder import CONFIG, WEIGHTS


def push(run: Path, repo: str, private: bool = False) -> str:
    """Upload configuration, weights and card of a run to USER/NAME, which is made if there is none; its address."""
    card = model_card(run, repo)  # reads everything, so it refuses what nobody could load
    with _one_line_errors(repo), tempfile.TemporaryDirectory() as folder:
        for name in (CONFIG, WEIGHTS):
            shutil.copy(run / name, folder)
        (Path(folder) / CARD).write_text(card, encoding="utf-8")
        api = _hub().HfApi()
        address = api.create_repo(repo, private=private, exist_ok=True)
        api.upload_folder(repo_id=repo, folder_path=folder, commit_message="An agent of skipper-rl")
    return str(address)


def pull(repo: str) -> Path:
    """The folder of the agent USER/NAME, or USER/NAME@REVISION, downloaded unless it is in the hub's cache."""
    name, _, revision = repo.partition("@")
    with _one_line_errors(repo):
        files = [CONFIG, WEIGHTS, CARD]
        path = _hub().HfApi().snapshot_download(name, revision=revision or None, allow_patterns=files)
    missing = [file for file in (CONFIG, WEIGHTS) if not (Path(path) / file).exists()]
    if missing:
        raise ValueError(f"{HUB}{repo} holds no agent of this package: it has no {' and no '.join(missing)}")
    return Path(path)


def _hub() -> Any:
    try:
        import huggingface_hub
        import huggingface_hub.errors
    except ModuleNotFoundError:
        raise ValueError("the hub needs another package: pip install 'skipper-rl[hub]'") from None
    return huggingface_hub


@contextmanager
def _one_line_errors(repo: str) -> Iterator[None]:
    """Say in one line what was wrong with a request."""
    errors = _hub().errors
    try:
        yield
    except errors.LocalEntryNotFoundError:
        raise ValueError(f"{HUB}{repo} is not in the cache, and the hub cannot be reached") from None
    except errors.HFValidationError:
        raise ValueError(f"{HUB}{repo}: wanted USER/NAME, of letters, digits, '-', '_' and '.'") from None
    except errors.RevisionNotFoundError:
        raise ValueError(f"{HUB}{repo}: there is no such revision") from None
    except errors.RepositoryNotFoundError:
        raise ValueError(f"{HUB}{repo}: there is no such model, or it needs a login (hf auth login)") from None
    except errors.HTTPError as error:
        response = getattr(error, "response", None)
        status = getattr(response, "status_code", None)
        if status in (401, 403):
            raise ValueError(
                f"{HUB}{repo}: the hub refuses it; log in with a token that may write: hf auth login"
            ) from None
        reason = f"the hub answers with status {status}" if status else "the hub cannot be reached"
        raise ValueError(f"{HUB}{repo}: {reason} ({type(error).__name__})") from None
    except ConnectionError:  # also where the library is told to be offline
        raise ValueError(f"{HUB}{repo}: the hub cannot be reached") from None
