"""``skipper plot``: learning curves."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class Plot:
    """Draw the learning curves of one or more runs.

    Examples: skipper plot runs/first runs/second --out curves.png
              skipper plot skipper-regen-50 modelfree-50 --out pretrained.png
    """

    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN ...")]
    """Run folders, or names of pretrained agents."""
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
        names = [path.name for path in self.runs]
        if len(set(names)) < len(names):
            names = list(map(str, self.runs))
        runs = {name: find_run(path) for name, path in zip(names, self.runs, strict=True)}
        curves = {name: read_evaluations(run) for name, run in runs.items()}
        if len({tuple(records[0]) for records in curves.values()}) > 1:
            raise ValueError("these runs were evaluated on different sets of tasks; plot them one by one")
        self.out.parent.mkdir(parents=True, exist_ok=True)
        draw_learning_curves(curves, self.out, find_family(read_config(next(iter(runs.values()))).env).set_kind)
        print(f"wrote {self.out}")
