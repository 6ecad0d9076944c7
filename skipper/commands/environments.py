"""``skipper environments``: which environments can be trained on, and what each offers."""

import json
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Annotated, Any

import tyro
from rich.console import Console

from skipper.commands.help import entry
from skipper.envs.benchmarks import BENCHMARKS
from skipper.envs.registry import FAMILIES, find_catalogue


@dataclass(frozen=True)
class Environments:
    """List the environments of this package, and those of MiniGrid with what each offers or why it is refused.

    Every MiniGrid environment is tried out, which takes a few minutes for all of them. "goal": tasks give their goals,
    which are learned otherwise; "oracle": ground truth by search; "table": fixed tasks are stepped by transition
    tables; "states": of a task, where they are few enough to list. Some have very few layouts: there, success on unseen
    tasks says little, however many are played.

    Examples: skipper environments
              skipper environments "MiniGrid-LavaCrossing*"
    """

    pattern: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="PATTERN")] = "*"
    """Only ids of MiniGrid that match, with * for any characters."""
    json: bool = False
    """Print JSON, one line per environment."""

    def run(self) -> None:
        """Try out and print."""
        width, refused = Console().width, []
        if not self.json:
            print(entry("Benchmarks", ", ".join(BENCHMARKS), width), end="")
            print(f"Families: {', '.join(sorted(FAMILIES))}; of MiniGrid (--env minigrid:ID):", flush=True)
        for found in find_catalogue(lambda name: fnmatch(name, self.pattern)):
            text = json.dumps(found._asdict()) + "\n" if self.json else entry(found.env_id, about(found), width)
            print(text, end="", flush=True)
            refused.append(bool(found.reason))
        if not refused:
            raise ValueError(f"no environment of MiniGrid matches {self.pattern!r}; * stands for any characters")
        if not self.json:
            print(f"{len(refused) - sum(refused)} supported, {sum(refused)} refused.")


def about(found: Any) -> str:
    """What an environment offers, or why it is refused."""
    if found.reason:
        return f"refused: {found.reason}"
    offers = ["goal given" if found.goal else "goal learned"]
    offers += [name for name, has in (("oracle", found.oracle), ("table", found.table)) if has]
    if found.states is not None:
        offers.append(f"{found.states:,} states")
    return f"{', '.join(offers)}; {found.layouts}"
