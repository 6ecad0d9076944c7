"""The report of an output folder: figures, tables, configurations, versions, times and failures of its items."""

import csv
import json
import os
import platform
from collections.abc import Collection, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from skipper.experiments.define import DEFAULT_ROOT, Item, Scale, seeds_of, series_of, works_of
from skipper.experiments.execute import read_history
from skipper.experiments.live_table import duration
from skipper.experiments.paper import find_item
from skipper.experiments.report_page import Link, Section, to_html, to_markdown
from skipper.experiments.results import EXPERIMENTS, Found, draw, find, read_experiments, tables
from skipper.experiments.works import EVALUATION_SEED, Evaluation, Training, Work
from skipper.runtime.machine import describe_machine
from skipper.training.recorder import METRICS
from skipper.training.run_folder import CONFIG

HTML, MARKDOWN, CSV = "report.html", "report.md", "report.csv"
PACKAGES = ("skipper-rl", "torch", "numpy", "numba", "scipy", "gymnasium", "ray")
COLUMNS = ("success", "low", "high", "episodes", "length", "deaths", "timeouts")


def write_report(root: Path, names: Sequence[str] | None = None, out: Path | None = None) -> list[Path]:
    """Draw the figures and write the report in its three forms, of some or all items, to ``root`` or ``out``."""
    known, out = read_experiments(root), out or root
    experiments = {find_item(name): scale for name, scale in known.items() if names is None or name in names}
    if not experiments:
        raise ValueError(f"{root} holds no experiment; make one with `skipper reproduce NAME --out {root}`")
    found = {item: find(item, scale, root) for item, scale in experiments.items()}
    seconds = wall_times(root)
    out.mkdir(exist_ok=True)
    sections = [
        _item_section(item, scale, found[item], seconds, Folders(root, out)) for item, scale in experiments.items()
    ]
    works = {work.name: work for item, scale in experiments.items() for work in works_of(item, scale)}
    history = [entry for entry in read_history(root) if names is None or entry["run"] in works]
    there = {name for name, work in works.items() if work.recorded(root)}
    sections += [_failures(history, there), _setup()]
    paths = [out / name for name in (HTML, MARKDOWN, CSV)]
    title = f"Report of {', '.join(item.name for item in experiments)}"
    paths[0].write_text(to_html(title, sections), encoding="utf-8")
    paths[1].write_text(to_markdown(title, sections, out), encoding="utf-8")
    _write_csv(paths[2], found)
    return paths


def is_reported(works: Sequence[Work], root: Path) -> bool:
    """Whether the report of an output folder is newer than what was asked for, and than these results."""
    page, results = root / HTML, [work.file(root) for work in works if isinstance(work, Evaluation)]
    newest = max(file.stat().st_mtime for file in (root / EXPERIMENTS, *results))
    return page.exists() and page.stat().st_mtime >= newest


class Folders(NamedTuple):
    """Where runs are, and where their report is."""

    root: Path
    out: Path

    def link(self, work: Work) -> str:
        """From the report to a run."""
        place = work.folder(self.root) if isinstance(work, Training) else work.file(self.root)
        return Path(os.path.relpath(place, self.out)).as_posix()


def _item_section(
    item: Item, scale: Scale, found: Sequence[Found], seconds: dict[str, float], folders: Folders
) -> Section:
    root, out, works = *folders, works_of(item, scale)
    there = [work for work in works if work.recorded(root)]
    timed = [seconds[work.name] for work in there if work.name in seconds]
    spent = f"they took {duration(sum(timed))} of one core" if timed else "their times are not known"
    labels = f" ({', '.join(item.labels)} of the paper)" if item.labels else ""
    paragraphs = [
        f"{item.about[0].upper()}{item.about[1:]}{labels}.",
        f"{len(there)} of {len(works)} runs are there; {spent}. Preset "
        f"{describe_scale(item, scale)}. {item.episodes} tasks per evaluation set with evaluation seed "
        f"{EVALUATION_SEED}. Bands and bars: 95% t-intervals over seeds; of two seeds, from one to the other.",
    ]
    drawn = draw(item, found, out)
    # The page shows what can be scaled, where there is a choice.
    figures = [path for path in drawn if path.suffix == ".svg"] or drawn
    links = [Link(work.name, folders.link(work), _time_of(work.name, seconds)) for work in there]
    made_in = root if out == root else DEFAULT_ROOT  # nobody trains in an archive
    commands = "\n".join(" ".join(["skipper", *work.command(made_in)]) for work in works)
    configs = [
        (f"configuration of {work.name}", (work.folder(root) / CONFIG).read_text(encoding="utf-8"))
        for work in there
        if isinstance(work, Training) and work.seed == seeds_of(work.agent, item, scale)[0]
    ]
    title = f"{item.name}: {item.about}"
    return Section(title, paragraphs, figures, tables(item, found), links, [("commands", commands), *configs])


def wall_times(root: Path) -> dict[str, float]:
    """Seconds of every run: of trainings from their own records, of evaluations from the history of tries."""
    seconds = {str(entry["run"]): float(str(entry["seconds"])) for entry in read_history(root)}
    for metrics in root.glob(f"runs/*/{METRICS}"):
        records = map(json.loads, metrics.read_text(encoding="utf-8").splitlines())
        seconds[metrics.parent.name] = sum(record.get("seconds", 0.0) for record in records)
    return seconds


def _time_of(name: str, seconds: dict[str, float]) -> str:
    return duration(seconds[name]) if name in seconds else ""


def describe_scale(item: Item, scale: Scale) -> str:
    """Preset, steps where they are not the preset's, training seeds, and which agents are left out."""
    steps = item.steps if scale.steps is None else scale.steps
    agents: dict[range, list[str]] = {}
    for agent in dict.fromkeys(series.agent for series in series_of(item, scale)):
        agents.setdefault(seeds_of(agent, item, scale), []).append(agent)
    seeds = {
        str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}": ", ".join(names)
        for numbers, names in agents.items()
    }
    left_out = dict.fromkeys(series.agent for series in item.series if series not in series_of(item, scale))
    return (
        f"{scale.preset or item.preset}{f' with {steps:,} steps' if steps else ''}, training seeds "
        + ", ".join(f"{text} ({names})" if len(seeds) > 1 else text for text, names in seeds.items())
        + (f"; without {', '.join(left_out)}" if left_out else "")
    )


def _failures(tries: Sequence[dict[str, object]], there: Collection[str]) -> Section:
    """Tries that did not end well, and runs that did not in the end and are not ``there`` by other ways."""
    history = [entry for entry in tries if entry["outcome"] != "finished"]
    last = {entry["run"]: entry["outcome"] for entry in tries}
    failed = [str(run) for run, outcome in last.items() if outcome == "failed" and run not in there]
    text = f"Failed: {', '.join(failed)}." if failed else "No run has failed."
    text += f" {len(history)} tries were interrupted or failed." if history else ""
    details = [(f"{entry['run']} on {entry['node'] or 'a lost node'}", str(entry["error"])) for entry in history]
    return Section("Failures", [text], details=details)


def _setup() -> Section:
    """Versions and the machine of the report."""
    versions: dict[str, Any] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    found = describe_machine()
    machine = f"{platform.system()} {platform.machine()}, {found['cores']} cores of {found['processor']}"
    lines = "\n".join(f"{name} {number}" for name, number in versions.items())
    return Section("Versions", [f"Written on {machine}."], details=[("versions", lines)])


def _write_csv(path: Path, found: dict[Item, list[Found]]) -> None:
    """A row per item, series, seed and set of tasks."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["item", "series", "training_tasks", "seed", "steps", "set", *COLUMNS, "run"])
        for item, series in found.items():
            for each in series:
                for evaluation, document in zip(each.evaluations, each.documents, strict=True):
                    about = document["about"]
                    start = [item.name, each.series.label, each.number, about["seed"], about["steps"]]
                    for name, row in document["sets"].items():
                        writer.writerow([*start, name, *(row[column] for column in COLUMNS), evaluation.name])
