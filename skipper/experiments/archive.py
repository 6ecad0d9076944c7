"""An archive of experiments: records and results without weights, from which all reports can be made again."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from skipper.experiments.define import Evaluation, Work, works_of
from skipper.experiments.execute import HISTORY
from skipper.experiments.paper import ITEMS, find_item
from skipper.experiments.report import MARKDOWN, write_report
from skipper.experiments.results import EXPERIMENTS, read_experiments
from skipper.training.recorder import EVALUATIONS, METRICS
from skipper.training.run_folder import CONFIG

INDEX = "README.md"


def archive(root: Path, target: Path) -> list[Path]:
    """Copy what reports are made of, write one report per item, and list all items; returns the written files."""
    experiments = read_experiments(root)
    if not experiments:
        raise ValueError(f"{root} holds no experiment; make one with `skipper reproduce NAME --out {root}`")
    # Records and results, of whatever is complete.
    works = {work.name: work for name, scale in experiments.items() for work in works_of(find_item(name), scale)}
    recorded = [work for work in works.values() if work.recorded(root)]
    files = [file for work in recorded for file in _files(work, root)]
    files += [root / name for name in (EXPERIMENTS, HISTORY) if (root / name).exists()]
    for file in files:
        copy = target / file.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    # Reports, and the list of all items.
    reports = [path for name in experiments for path in write_report(target, [name], target / name)]
    index = target / INDEX
    index.write_text("\n".join(_index(target)) + "\n", encoding="utf-8")
    return [*reports, index]


def _files(work: Work, root: Path) -> list[Path]:
    if isinstance(work, Evaluation):
        return [work.file(root)]
    files = [work.folder(root) / name for name in (CONFIG, EVALUATIONS, METRICS)]
    return [file for file in files if file.exists()]  # adopted runs may have no metrics


def _index(target: Path) -> Iterator[str]:
    """The lines of a page that says of every item whether it was run."""
    experiments = read_experiments(target)
    yield "# Figures and tables of the paper: what was run\n"
    yield "Made by `skipper report DIR --archive`. Weights are not kept; the commands in each report make them again.\n"
    yield "| item | in the paper | runs |"
    yield "|---|---|---|"
    for name, item in ITEMS.items():
        labels, state = ", ".join(item.labels), "not run"
        if name in experiments:
            works = works_of(item, experiments[name])
            there = sum(work.recorded(target) for work in works)
            state = f"[{there} of {len(works)}]({name}/{MARKDOWN})"
        yield f"| {name} | {labels} | {state} |"
