"""``skipper export``: the records of a run for spreadsheets and other programs."""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tyro

from skipper.commands.options import RunArgument
from skipper.training.pretrained import find_run
from skipper.training.recorder import EVALUATIONS, METRICS, read_evaluations, read_records
from skipper.training.state_file import write_atomically


@dataclass(frozen=True)
class Export:
    """Write the records of a run as metrics.csv and evaluations.csv.

    Metrics have a row per record, evaluations one per record and evaluation set. What a record does not hold is empty.

    Example: skipper export csv runs/first --out tables
    """

    kind: tyro.conf.Positional[Literal["csv"]]
    """The format."""
    run_folder: RunArgument
    """Folder of the run."""
    out: Path | None = None
    """Folder to write to; by default that of the run."""

    def run(self) -> None:
        """Write both files."""
        run = find_run(self.run_folder)
        folder = self.out or run
        tables = {
            EVALUATIONS: list(_evaluation_rows(read_evaluations(run))),
            METRICS: read_records(run, METRICS),
        }
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in tables.items():
            path = (folder / name).with_suffix(".csv")
            write_table(path, rows)
            print(f"wrote {path}: {len(rows):,} rows")


def _evaluation_rows(records: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A row per evaluation and evaluation set."""
    for record in records:
        for name, summary in record.items():
            if name != "step":
                yield {"step": record["step"], "set": name, **summary}


def write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows with a column for every name that any of them has, in the order of their first appearance."""
    columns = list(dict.fromkeys(name for row in rows for name in row)) or ["step"]

    def write(temporary: Path) -> None:
        with open(temporary, "w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, columns, lineterminator="\n")
            table.writeheader()
            table.writerows(rows)

    write_atomically(path, write)
