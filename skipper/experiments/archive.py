"""An archive of experiments: records and results without weights, from which reports can be made again.

Runs are found by names that today's presets give them, so that only the version that made them finds them again.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

from skipper.experiments.define import Scale, works_of
from skipper.experiments.execute import HISTORY
from skipper.experiments.paper import ITEMS, find_item
from skipper.experiments.report import MARKDOWN, describe_scale, write_report
from skipper.experiments.results import ARCHIVE, FIGURES, is_archive, read_experiments, remember
from skipper.experiments.works import Evaluation, Work
from skipper.training.recorder import EVALUATIONS, METRICS
from skipper.training.run_folder import CONFIG

INDEX = "README.md"


def archive(root: Path, folder: Path) -> list[Path]:
    """Add what reports are made of to an archive, write its reports and its list of items; returns these files.

    An archive can be made from several output folders. From itself, only its reports and its list are written.
    """
    experiments = read_experiments(root)
    if not experiments:
        raise ValueError(f"{root} holds no experiment; make one with `skipper reproduce NAME --out {root}`")
    if folder.exists() and any(folder.iterdir()) and not is_archive(folder):
        raise ValueError(f"{folder} is neither empty nor an archive; choose another")
    known = read_experiments(folder)
    if changed := [
        name for name in known if name in experiments and not _extends(name, experiments[name], known[name])
    ]:
        raise ValueError(
            f"{folder} holds {', '.join(changed)} with other agents, seeds, steps or preset; choose another"
        )
    if root.resolve() != folder.resolve():
        _add(root, folder)
    reports = [path for name in experiments for path in write_report(folder, [name], folder / name)]
    index = folder / INDEX
    index.write_text("\n".join(_index(folder)) + "\n", encoding="utf-8")
    return [*reports, index]


def _extends(name: str, new: Scale, old: Scale) -> bool:
    """Whether an item has all that it had, and perhaps more agents or seeds."""
    return {work.name for work in works_of(find_item(name), old)} <= {
        work.name for work in works_of(find_item(name), new)
    }


def _add(root: Path, folder: Path) -> None:
    """Copy records, results and pictures of all items, as far as they are complete."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ARCHIVE).write_text("Records and results without weights: nothing is trained here.\n", encoding="utf-8")
    for name, scale in read_experiments(root).items():
        remember(folder, name, scale)
        recorded = [work for work in works_of(find_item(name), scale) if work.recorded(root)]
        copies = {file: folder / file.relative_to(root) for work in recorded for file in _files(work, root)}
        # Pictures cannot be drawn without weights.
        if find_item(name).needs_weights:
            drawn = (root / FIGURES).glob(f"{name}-*.png")
            copies |= {file: folder / name / file.relative_to(root) for file in drawn}
        for file, copy in copies.items():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
    # The history tells how long evaluations took, and what failed.
    if (root / HISTORY).exists():
        lines = [place / HISTORY for place in (folder, root) if (place / HISTORY).exists()]
        known = dict.fromkeys(line for file in lines for line in file.read_text(encoding="utf-8").splitlines())
        (folder / HISTORY).write_text("\n".join(known) + "\n", encoding="utf-8")


def _files(work: Work, root: Path) -> list[Path]:
    if isinstance(work, Evaluation):
        return [work.file(root)]
    metrics = work.folder(root) / METRICS  # a run whose records were copied here may have none
    return [work.folder(root) / CONFIG, work.folder(root) / EVALUATIONS, *([metrics] if metrics.exists() else [])]


def _index(folder: Path) -> Iterator[str]:
    """The lines of a page that says of every item whether it was run."""
    experiments = read_experiments(folder)
    yield "# Figures and tables of the paper: what was run\n"
    yield "Made by `skipper report DIR --archive`. Weights are not kept; the commands in each report make them again.\n"
    yield "| item | in the paper | runs | preset, training seeds |"
    yield "|---|---|---|---|"
    for name, item in ITEMS.items():
        labels, state, about = ", ".join(item.labels), "not run", ""
        if name in experiments:
            scale = experiments[name]
            works = works_of(item, scale)
            there = sum(work.recorded(folder) for work in works)
            state = f"[{there} of {len(works)}]({name}/{MARKDOWN})"
            about = describe_scale(item, scale)
        yield f"| {name} | {labels} | {state} | {about} |"
