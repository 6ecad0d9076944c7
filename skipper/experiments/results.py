"""What the runs of an item have given so far, its figure and its tables."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skipper.analysis.paper_tables import Table, comparison_rows, significance_table, success_rows
from skipper.analysis.results_file import Run, read_run
from skipper.envs.registry import find_family
from skipper.experiments.define import Item, Scale, Series, evaluations_of
from skipper.experiments.paper import number_name, tasks_name
from skipper.experiments.works import Evaluation, resolve
from skipper.training.evaluate import TRAINING
from skipper.training.recorder import read_evaluations
from skipper.training.state_file import write_atomically
from skipper.types import Array

EXPERIMENTS = "experiments.json"  # which items were asked for in an output folder, and at which scale
FIGURES = "figures"
ARCHIVE = "ARCHIVE"  # marks a folder of records and results without weights


class Found(NamedTuple):
    """What there is of one series."""

    series: Series
    evaluations: list[Evaluation]  # those that are finished
    wanted: int
    runs: list[Run]  # on unseen tasks, one per finished evaluation
    documents: list[dict[str, Any]]  # their files
    curves: list[list[dict[str, Any]]]  # evaluations over training, of each of them whose records are there

    @property
    def number(self) -> str:
        """Its number of training tasks."""
        return number_name(self.series.tasks)

    def success(self, name: str) -> Array:
        """(seeds,) final success on a set of tasks."""
        return np.array([document["sets"][name]["success"] for document in self.documents])

    @property
    def sets(self) -> list[str]:
        """Names of the sets that all of them played, training tasks first."""
        first, *others = [document["sets"] for document in self.documents] or [{}]
        names = [name for name in first if all(name in other for other in others)]
        return sorted(names, key=lambda name: name != TRAINING)


def remember(root: Path, name: str, scale: Scale) -> None:
    """Note in the output folder that an item was asked for."""
    known = read_experiments(root) | {name: scale}
    text = json.dumps({item: asdict(each) for item, each in known.items()}, indent=2) + "\n"
    root.mkdir(parents=True, exist_ok=True)
    write_atomically(root / EXPERIMENTS, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def is_archive(root: Path) -> bool:
    """Whether a folder keeps results only."""
    return (root / ARCHIVE).exists()


def read_experiments(root: Path) -> dict[str, Scale]:
    """The items that were asked for, in this order."""
    file = root / EXPERIMENTS
    if not file.exists():
        return {}
    content = json.loads(file.read_text(encoding="utf-8"))
    return {name: _scale(**values) for name, values in content.items()}


def _scale(agents: Sequence[str] | None = None, **values: Any) -> Scale:
    return Scale(**values, agents=None if agents is None else tuple(agents))


def find(item: Item, scale: Scale, root: Path) -> list[Found]:
    """What there is of every series of an item."""
    return [
        _found(series, [each for each in evaluations if each.finished(root)], len(evaluations), root)
        for series, evaluations in evaluations_of(item, scale).items()
    ]


def _found(series: Series, finished: list[Evaluation], wanted: int, root: Path) -> Found:
    files = [each.file(root) for each in finished]
    documents = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    curves = [
        document.get("curve") or _recorded_curve(each, root) for each, document in zip(finished, documents, strict=True)
    ]
    return Found(series, finished, wanted, [read_run(file) for file in files], documents, list(filter(None, curves)))


def _recorded_curve(evaluation: Evaluation, root: Path) -> list[dict[str, Any]]:
    """What a run evaluated itself; nothing if its folder is gone."""
    try:
        return read_evaluations(evaluation.training.folder(root))
    except (OSError, ValueError):
        return []


def tables(item: Item, found: Sequence[Found]) -> list[Table]:
    """The tables of an item."""
    if item.layout == "table":
        by_label: dict[str, dict[str, list[Run]]] = {}
        for each in found:
            by_label.setdefault(each.series.label, {})[each.number] = each.runs
        first, *_ = by_label
        return [significance_table(item.about, by_label.pop(first), by_label), _success(found)]
    # Against the number of tasks, agents are compared where it is the same.
    groups: dict[str, list[Found]] = {}
    for each in found:
        groups.setdefault(each.number if item.layout == "tasks" else "", []).append(each)
    compared = [comparison_rows({_label(each, found): each.runs for each in group}) for group in groups.values()]
    return [_success(found), *filter(None, compared)]


def _success(found: Sequence[Found]) -> Table:
    training = {_label(each, found): list(each.success(TRAINING)) for each in found if TRAINING in each.sets}
    return success_rows({_label(each, found): each.runs for each in found}, training)


def _label(each: Found, found: Sequence[Found]) -> str:
    """The label of a series, with its number of tasks where several series have the same."""
    same = sum(other.series.label == each.series.label for other in found)
    return f"{each.series.label}, {tasks_name(each.series.tasks)}" if same > 1 else each.series.label


def draw(item: Item, found: Sequence[Found], out: Path) -> list[Path]:
    """Draw the figure of an item from what there is into a folder of ``out``; returns its files."""
    from skipper.analysis import paper_figures as figures  # matplotlib is slow to import

    known = [each for each in found if each.documents]
    path = out / FIGURES / item.name
    if item.layout == "pictures":
        return sorted((out / FIGURES).glob(f"{item.name}-*.png"))
    if item.layout == "table" or not known:
        return []
    config = resolve(known[0].evaluations[0].training)
    kind, names = find_family(config.env).set_kind, list(dict.fromkeys(name for each in known for name in each.sets))
    curves = {_label(each, known): each.curves for each in known}
    if item.layout == "tasks":
        return figures.draw_against_tasks(_by_number(known), names, path, kind)
    if item.layout == "bars":
        success = {_label(each, known): {name: each.success(name) for name in each.sets} for each in known}
        return figures.draw_bars(success, names, path, kind)
    if item.layout == "suppression":
        return figures.draw_suppression(curves, path)
    if item.layout == "walks":
        threshold: Any = getattr(config, "planning", None)
        return figures.draw_walks(_walks(known[0]), int(threshold.edge_threshold), path)
    return figures.draw_curves(curves, names, path, kind)


def _by_number(known: Sequence[Found]) -> Mapping[str, Mapping[str, Mapping[str, Array]]]:
    """Final success by label, number of tasks and set."""
    points: dict[str, dict[str, dict[str, Array]]] = {}
    for each in known:
        sets = {name: each.success(name) for name in each.sets}
        points.setdefault(each.series.label, {})[each.number] = sets
    return points


def _walks(found: Found) -> dict[str, dict[str, Array]]:
    """Failure rates by set and true distance, of the distances that occur with every seed."""
    walks: dict[str, dict[str, Array]] = {}
    for name in found.sets:
        rates = [
            {steps: row["failure"] for steps, row in document["truth"][name]["walks"].items()}
            for document in found.documents
        ]
        common = [steps for steps in rates[0] if all(rate.get(steps) is not None for rate in rates)]
        walks[name] = {steps: np.array([rate[steps] for rate in rates]) for steps in common}
    return walks
