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
        from skipper.training.pretrained import find_run
        from skipper.training.recorder import read_evaluations
        from skipper.training.run_folder import read_config

        if not self.runs:
            raise ValueError("name at least one run folder")
        runs = {path.name: find_run(path) for path in self.runs}
        curves = {name: read_evaluations(run) for name, run in runs.items()}
        draw_learning_curves(curves, self.out, find_family(read_config(next(iter(runs.values()))).env).set_kind)
        print(f"wrote {self.out}")
