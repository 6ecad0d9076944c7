"""``skipper report``: figures and tables of experiments on one page."""

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Report:
    """Write the report of an output folder of ``skipper reproduce``, from whatever runs it holds.

    The self-contained page report.html has figures, tables, configurations, versions, times, failures and links to all
    runs; report.md and report.csv hold the same as text and as numbers.

    Examples: skipper report runs/paper
              skipper report runs/paper --archive results/paper
    """

    folder: tyro.conf.Positional[Path]
    """The output folder."""
    archive: Path | None = None
    """Write to this folder instead: records and results without weights, a report per item, and a list of all items.
    The same command with the archive itself writes its reports again."""

    def run(self) -> None:
        """Write all files."""
        from skipper.experiments.archive import archive
        from skipper.experiments.report import write_report

        for path in archive(self.folder, self.archive) if self.archive else write_report(self.folder):
            print(f"wrote {path}")
