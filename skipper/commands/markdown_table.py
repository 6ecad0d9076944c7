"""``skipper table``: success rates of several agents and seeds in Markdown."""

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Table:
    """Print a table of success rates in Markdown, as in the README.

    The file holds a JSON object: the name of each row, and a pattern of the files that `skipper evaluate --training
    --json` wrote for its seeds, relative to the file.

    Example: skipper table results/skipper/report/table.json
    """

    rows: tyro.conf.Positional[Path]
    """The file."""

    def run(self) -> None:
        """Print the table."""
        from skipper.analysis.success_table import read_rows, success_table

        print(success_table(read_rows(self.rows)))
