"""The layouts of the paper's figures, as PNG and SVG.

Lines differ in dashes and markers and bars in hatches, so that they can be told apart in grey too.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from skipper.analysis.statistics import seed_spread
from skipper.training.evaluate import TRAINING
from skipper.types import Array

Records = Sequence[Mapping[str, Any]]  # evaluations of one run over training
Curves = Mapping[str, Sequence[Records]]  # by label, one for every seed
Success = Mapping[str, Mapping[str, Array]]  # (seeds,) by label and set of tasks
SUFFIXES = (".png", ".svg")
ASIDE = 0.09  # between the points of two series at the same number of tasks
# Distinct lightness as well as hue, after Okabe and Ito.
COLOURS = ("#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#808080")
LINES = ("-", "--", "-.", ":", (0, (6, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (5, 4)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # one fewer than LINES: 56 series are told apart
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "++", "oo", "--", "||", "**", "//.", "\\\\o", "x-")
# Rows of the figure of delusion suppression: title, and what it shows of the plans.
DELUSIONS: dict[str, tuple[str, ...]] = {
    "error of distances, delusional": ("edge_error_from_delusional", "edge_error_to_delusional"),
    "delusional targets": ("delusional_target",),
    "optimal targets": ("optimal_target",),
}


class Style(NamedTuple):
    """How one series is told from the others."""

    colour: str
    line: Any
    marker: str
    hatch: str


def styles(labels: Sequence[str]) -> dict[str, Style]:
    """A style for every label."""
    cycles = zip(cycle(COLOURS), cycle(LINES), cycle(MARKERS), cycle(HATCHES), strict=False)
    return {label: Style(*next(cycles)) for label in labels}


def save(figure: Figure, path: Path) -> list[Path]:
    """Write the figure as PNG and as SVG, the same bytes every time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": path.name}):
        for suffix in SUFFIXES:
            metadata = {"Date": None} if suffix == ".svg" else {}
            figure.savefig(path.with_suffix(suffix), dpi=120, metadata=metadata)
    return [path.with_suffix(suffix) for suffix in SUFFIXES]


def _panels(names: Sequence[str], set_kind: str) -> tuple[Figure, list[Axes]]:
    """A panel for every set of tasks, side by side, with success from 0 to 1."""
    figure = Figure(figsize=(2.9 * len(names), 3.3), layout="constrained")
    panels = list(figure.subplots(1, len(names), squeeze=False, sharey=True)[0])
    for axes, name in zip(panels, names, strict=True):
        axes.set_title("training tasks" if name == TRAINING else f"unseen, {set_kind} {name}", fontsize=10)
        axes.set_ylim(-0.03, 1.03)
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("success")
    return figure, panels


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 6), fontsize=9)


def _line(axes: Axes, x: Sequence[float], values: Array, label: str, style: Style) -> None:
    """Mean over seeds (S, X) with a band: its 95% interval, or from one of two seeds to the other."""
    mean, low, high = seed_spread(values)
    axes.plot(x, mean, label=label, color=style.colour, linestyle=style.line, marker=style.marker, markersize=4)
    axes.fill_between(x, low, high, color=style.colour, alpha=0.15, linewidth=0)


def _means_and_errors(columns: Iterable[Array]) -> tuple[Array, Array]:
    """Means (X,) of X groups of seeds, and how far their spreads reach below and above them (2, X)."""
    means, low, high = np.array([seed_spread(values) for values in columns], float).reshape(-1, 3).T
    return means, np.array([means - low, high - means])


def _over_training(axes: Axes) -> None:
    axes.set_xlabel("environment steps")
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def common_steps(runs: Sequence[Records]) -> list[int]:
    """The steps at which all runs were evaluated."""
    steps = [{int(record["step"]) for record in records} for records in runs]
    return sorted(set.intersection(*steps)) if steps else []


def at_steps(runs: Sequence[Records], steps: Sequence[int], *keys: str) -> Array:
    """(S, T) one value of the records of S runs at T steps; NaN where a record does not have it."""
    return np.array([[_value(_by_step(records)[step], keys) for step in steps] for records in runs], float)


def _by_step(records: Records) -> dict[int, Mapping[str, Any]]:
    return {int(record["step"]): record for record in records}


def _value(record: Any, keys: Sequence[str]) -> float:
    for key in keys:
        record = record.get(key) if record is not None else None
    return float("nan") if record is None else float(record)


def draw_curves(curves: Curves, names: Sequence[str], path: Path, set_kind: str) -> list[Path]:
    """Success over training: a panel per set of tasks, a curve per label with its band over seeds."""
    figure, panels = _panels(names, set_kind)
    for label, style in styles(list(curves)).items():
        runs = curves[label]
        steps = common_steps(runs)
        for axes, name in zip(panels, names, strict=True):
            if runs and all(name in record for records in runs for record in records):
                _line(axes, steps, at_steps(runs, steps, name, "success"), label, style)
    for axes in panels:
        _over_training(axes)
    _legend(figure, panels[-1])
    return save(figure, path)


def draw_against_tasks(
    points: Mapping[str, Mapping[str, Mapping[str, Array]]], names: Sequence[str], path: Path, set_kind: str
) -> list[Path]:
    """Final success against the number of training tasks; ``points`` are (seeds,) by label, number and set."""
    figure, panels = _panels(names, set_kind)
    numbers = sorted({number for series in points.values() for number in series}, key=float)
    for index, (label, style) in enumerate(styles(list(points)).items()):
        shift = ASIDE * (index - (len(points) - 1) / 2)  # so that intervals do not hide each other
        for axes, name in zip(panels, names, strict=True):
            of_series = points[label]
            known = {number: of_series[number][name] for number in numbers if name in of_series.get(number, {})}
            spots = [numbers.index(number) + shift for number in known]
            means, errors = _means_and_errors(known.values())
            axes.errorbar(
                spots,
                means,
                yerr=errors,
                label=label,
                color=style.colour,
                linestyle=style.line,
                marker=style.marker,
                markersize=5,
                capsize=3,
            )
    for axes in panels:
        axes.set_xticks(range(len(numbers)), numbers)
        axes.set_xlabel("training tasks")
    _legend(figure, panels[-1])
    return save(figure, path)


def draw_bars(success: Success, names: Sequence[str], path: Path, set_kind: str) -> list[Path]:
    """Final success: a group of bars per set of tasks, a bar per label with its interval over seeds."""
    figure = Figure(figsize=(max(8.0, 0.3 * len(success) * len(names)), 3.6), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / max(len(success), 1)
    for index, (label, style) in enumerate(styles(list(success)).items()):
        known = [place for place, name in enumerate(names) if name in success[label]]
        means, errors = _means_and_errors(success[label][names[place]] for place in known)
        axes.bar(
            [place + (index + 0.5) * width - 0.4 for place in known],
            means,
            width,
            yerr=errors,
            label=label,
            color="white",
            edgecolor=style.colour,
            hatch=style.hatch,
            capsize=2,
        )
    axes.set_xticks(
        range(len(names)), ["training tasks" if name == TRAINING else f"{set_kind} {name}" for name in names]
    )
    axes.set_ylim(0.0, 1.03)
    axes.set_ylabel("success")
    axes.grid(axis="y", alpha=0.3)
    _legend(figure, axes)
    return save(figure, path)


def draw_suppression(curves: Curves, path: Path) -> list[Path]:
    """Success on training tasks over training, and how plans are wrong there; records hold comparisons with truth."""
    figure = Figure(figsize=(3.3 * (1 + len(DELUSIONS)), 3.3), layout="constrained")
    panels = list(figure.subplots(1, 1 + len(DELUSIONS), squeeze=False)[0])
    for label, style in styles(list(curves)).items():
        runs = curves[label]
        steps = common_steps(runs)
        _line(panels[0], steps, at_steps(runs, steps, TRAINING, "success"), label, style)
        for axes, measures in zip(panels[1:], DELUSIONS.values(), strict=True):
            for measure, line in zip(measures, (style.line, ":"), strict=False):
                values = at_steps(runs, steps, "truth", TRAINING, "plans", measure)
                which = f"{label}, {measure.split('_')[2]}" if len(measures) > 1 else label
                _line(axes, steps, values, which, style._replace(line=line))
    for axes, title in zip(panels, ("success, training tasks", *DELUSIONS), strict=True):
        axes.set_title(title, fontsize=10)
        axes.set_ylim(-0.03, None if "error" in title else 1.03)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
        _over_training(axes)
    return save(figure, path)


def draw_walks(walks: Mapping[str, Mapping[str, Array]], threshold: int, path: Path) -> list[Path]:
    """Failure rate of the checkpoint policy against true distance; ``walks`` are (seeds,) by set and distance."""
    figure = Figure(figsize=(6, 3.8), layout="constrained")
    axes = figure.subplots()
    for label, style in styles(list(walks)).items():
        distances = sorted(map(int, walks[label]))
        _line(axes, distances, np.stack([walks[label][str(steps)] for steps in distances], axis=1), label, style)
    axes.axvline(threshold, color="grey", linewidth=1)
    axes.set(xlabel="true distance", ylabel="failure rate", ylim=(-0.03, 1.03))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=9)
    return save(figure, path)


def draw_supports(probabilities: Array, discount: float, path: Path) -> list[Path]:
    """One histogram over distances and, with another support, over discounts (paper, Fig. "support_override")."""
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    distances = np.arange(1, len(probabilities) + 1)
    left.bar(distances, probabilities, color="white", edgecolor=COLOURS[2], hatch=HATCHES[1])
    right.vlines(discount**distances, 0.0, probabilities, color=COLOURS[1], linewidth=3)
    for axes, support, name in ((left, distances, "distance"), (right, discount**distances, "discount")):
        axes.axvline(float(probabilities @ support), color="black", linestyle="--", label="mean")
        axes.set(xlabel=name, ylim=(0, None))
        axes.legend(fontsize=9)
    left.set_ylabel("probability")
    return save(figure, path)
