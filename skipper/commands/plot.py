"""``skipper plot``: learning curves."""

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Plot:
    """Draw the learning curves of one or more runs.

    Example: skipper plot runs/first runs/second --out curves.png
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run folders."""
    out: Path = Path("curves.png")
    """The figure; its suffix decides the format (png, pdf, svg)."""

    def run(self) -> None:
        """Write the figure."""
        from skipper.analysis.plots import draw_learning_curves
        from skipper.envs.registry import find_family
        from skipper.training.recorder import read_evaluations
        from skipper.training.run_folder import read_config

        if not self.runs:
            raise ValueError("name at least one run folder")
        curves = {path.name: read_evaluations(path) for path in self.runs}
        draw_learning_curves(curves, self.out, find_family(read_config(self.runs[0]).env).set_kind)
        print(f"wrote {self.out}")
