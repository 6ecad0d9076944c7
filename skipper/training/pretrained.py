"""Agents by name: the trained ones that come with the package, and what their cards say."""

import re
from pathlib import Path
from typing import NamedTuple

from skipper.runtime.checks import did_you_mean
from skipper.training.run_folder import CONFIG

PRETRAINED = Path(__file__).parents[1] / "pretrained"
CARD = "README.md"
HUB = "hf:"  # before USER/NAME of an agent on the Hugging Face Hub
_UNCHANGED = "as it is"  # how the row of a card begins that was played without other options


class Card(NamedTuple):
    """What the card of a pretrained agent says."""

    about: str
    facts: dict[str, str]
    success: dict[str, float]  # by evaluation set, and their mean; played as the agent is


def pretrained_names() -> list[str]:
    """The agents that come with the package."""
    return sorted(path.parent.name for path in PRETRAINED.glob(f"*/{CONFIG}"))


def names_run(text: str) -> bool:
    """Whether a word of the command line names a run."""
    return (Path(text) / CONFIG).is_file() or text in pretrained_names() or text.startswith(HUB)


def find_run(run: str | Path) -> Path:
    """The folder of a run: one that exists, that of the pretrained agent with this name, or a download from the hub."""
    path = Path(run)
    if path.is_file():
        raise ValueError(f"{run} is a file; name the folder of a run")
    if path.exists():
        return path
    if str(run).startswith(HUB):
        from skipper.training.hub import pull

        return pull(str(run).removeprefix(HUB))
    if str(run) in pretrained_names():
        return PRETRAINED / path
    names = pretrained_names()
    beside = [str(config.parent) for config in path.parent.glob(f"*/{CONFIG}")]
    hint = did_you_mean(str(path), [*names, *beside])
    raise ValueError(f"{run} is not a run folder, nor a pretrained agent ({', '.join(names)}){hint}")


def read_card(folder: Path) -> Card:
    """The card of a pretrained agent: its first paragraph, its table of facts and a row of that of results."""
    text = (folder / CARD).read_text(encoding="utf-8")
    about = text.split("\n\n")[1]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    facts = {row[0]: row[1] for row in rows if len(row) == 2 and row[0].strip("-")}
    header = next(row for row in rows if "mean" in row)
    played = next(row for row in rows if row[0].startswith(_UNCHANGED))
    shares = dict(zip(header, played, strict=True))
    success = {name: float(share.strip("*")) for name, share in shares.items() if re.fullmatch(r"[\d.]+|mean", name)}
    return Card(about, facts, success)
