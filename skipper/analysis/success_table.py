"""A table of success rates in Markdown, from the files of ``skipper evaluate --json`` of several seeds."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from skipper.analysis.results_file import Run, check_side, read_run


def read_rows(path: Path) -> dict[str, list[Path]]:
    """Rows of a table from a JSON object: names, and patterns of files relative to that of the object."""
    rows = json.loads(path.read_text())
    if not isinstance(rows, dict) or not all(isinstance(pattern, str) for pattern in rows.values()):
        raise ValueError(f"{path} must hold one object of names and patterns of files")
    found = {name: sorted(path.parent.glob(pattern)) for name, pattern in rows.items()}
    if empty := [name for name, files in found.items() if not files]:
        raise ValueError(f"{path}: no file matches {rows[empty[0]]!r}")
    return found


def success_table(rows: Mapping[str, Sequence[Path]]) -> str:
    """One row per agent: means over seeds for every evaluation set, their mean, the worst seed, and training tasks."""
    lines: list[str] = []
    first = read_run(next(iter(rows.values()))[0])
    sets = list(first.success)
    for name, files in rows.items():
        unseen = [read_run(path) for path in files]
        check_side(unseen)
        for run in unseen:
            _check_tasks(run, first)
        rates = np.array([[run.success[level] for level in sets] for run in unseen])  # (seeds, sets)
        training = np.mean([run.success["training"] for run in (read_run(path, training=True) for path in files)])
        if not lines:
            lines += [_line(["", *sets, "mean", "worst seed", "training tasks"]), "|---" * (len(sets) + 4) + "|"]
        means = [f"{rate:.3f}" for rate in rates.mean(0)]
        lines.append(_line([name, *means, f"**{rates.mean():.3f}**", f"{rates.mean(1).min():.3f}", f"{training:.3f}"]))
    return "\n".join(lines)


def _check_tasks(run: Run, first: Run) -> None:
    """Refuse a run that did not play the tasks of the ``first`` one."""
    if list(run.success) != list(first.success) or any(run.tasks(name) != first.tasks(name) for name in first.solved):
        raise ValueError(f"{first.path} and {run.path} are of different tasks, and cannot be in one table")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
