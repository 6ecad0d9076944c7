"""``skipper environments``: which environments can be trained on, and what each offers."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any

from rich.console import Console
from rich.table import Table

from skipper.envs.benchmarks import BENCHMARKS
from skipper.envs.registry import FAMILIES, find_catalogue


@dataclass(frozen=True)
class Environments:
    """List the environments of this package, and those of MiniGrid with what each offers or why it is refused.

    Every MiniGrid environment is tried out, which takes a few minutes for all of them. "goal": tasks give their goals,
    which are learned otherwise; "oracle": ground truth by search; "table": fixed tasks are stepped by transition
    tables; "states": of a task, where they are few enough to list.

    Example: skipper environments "MiniGrid-LavaCrossing*"
    """

    pattern: str = "*"
    """Only ids that match, with * for any characters."""
    json: bool = False
    """Print JSON, one line per environment."""

    def run(self) -> None:
        """Try out and print."""
        entries = find_catalogue(lambda name: fnmatch(name, self.pattern))
        if self.json:
            for entry in entries:
                print(json.dumps(entry._asdict()), flush=True)
            return
        console = Console()
        console.print(f"Benchmarks: {', '.join(BENCHMARKS)}")
        console.print(f"Families: {', '.join(sorted(FAMILIES))}; of MiniGrid (--env minigrid:ID):")
        console.print(_table(entries))


def _table(entries: Iterator[Any]) -> Table:
    table = Table("id", "goal", "oracle", "table", "states", "tasks, or why it is refused")
    for entry in entries:
        if entry.reason:
            table.add_row(entry.env_id, "", "", "", "", f"refused: {entry.reason}")
            continue
        offers = ("given" if entry.goal else "learned", *("yes" if has else "-" for has in (entry.oracle, entry.table)))
        table.add_row(entry.env_id, *offers, "-" if entry.states is None else f"{entry.states:,}", entry.layouts)
    return table
