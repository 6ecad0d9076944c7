"""``skipper report``: figures and tables of experiments on one page."""

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Report:
    """Write the report of an output folder of ``skipper reproduce``, from whatever runs it holds.

    The self-contained page report.html has figures, tables, configurations, versions, times, failures and links to all
    runs; report.md and report.csv hold the same as text and as numbers.

    Example: skipper report runs/paper
    """

    folder: tyro.conf.Positional[Path]
    """The output folder."""

    def run(self) -> None:
        """Write all files."""
        from skipper.experiments.report import write_report

        for path in write_report(self.folder):
            print(f"wrote {path}")
