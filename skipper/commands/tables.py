"""Tables and JSON that commands print."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from skipper.training.evaluate import Summary

Results = dict[str, dict[str, Summary]]  # by agent or change, then by evaluation set
LONGEST = 19  # letters of an agent's name beside its results; "module:function" may be longer


def narrow_table(labels: Sequence[str], numbers: Sequence[str], gap: int = 2) -> Table:
    """A table without frames, so that it fits 80 columns, whose cells are never broken over lines."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap - 1, 0, 0))
    for name in labels:
        table.add_column(name, no_wrap=True)
    for name in numbers:
        table.add_column(name, no_wrap=True, justify="right")
    return table


def results_table(results: Results, set_kind: str) -> Table:
    """A row per agent and evaluation set."""
    table = narrow_table(["agent", set_kind], ["success", "95% interval", "steps", "deaths", "timeouts"])
    for agent, sets in results.items():
        label = agent if len(agent) <= LONGEST else agent[: LONGEST - 1] + "…"
        for name, row in sets.items():
            shares = [f"{share:.3f}" for share in (row.deaths, row.timeouts)]
            interval = f"{row.low:.3f} - {row.high:.3f}"
            table.add_row(label, name, f"{row.success:.3f}", interval, f"{row.length:.1f}", *shares)
        table.add_section()
    return table


def results_json(results: Results) -> dict[str, dict[str, Any]]:
    """The same as JSON values."""
    return {name: {level: row._asdict() for level, row in sets.items()} for name, sets in results.items()}


def changes_table(title: str, changed: Results) -> Table:
    """A row per change: success per evaluation set, the mean, and the gain over the first row."""
    first = next(iter(changed.values()))
    table = narrow_table([title], [*first, "mean", "gain", "deaths", "timeouts"], gap=1)
    base = np.mean([row.success for row in first.values()])
    for name, rows in changed.items():
        success = [row.success for row in rows.values()]
        shares = [np.mean([getattr(row, key) for row in rows.values()]) for key in ("deaths", "timeouts")]
        numbers = [*success, np.mean(success)]
        gain = f"{np.mean(success) - base:+.3f}"
        table.add_row(name, *(f"{x:.3f}" for x in numbers), gain, *(f"{share:.3f}" for share in shares))
    return table


def errors_table(errors: dict[str, dict[str, Any]]) -> Table:
    """A row per measure, a column per evaluation set."""
    table = narrow_table(["compared with ground truth"], list(errors))

    def add(label: str, *path: str) -> None:
        values: list[Any] = list(errors.values())
        for key in path:
            values = [None if value is None else value.get(key) for value in values]
        if any(value is not None for value in values):
            table.add_row(label, *("-" if value is None else f"{value:.3f}" for value in values))

    for steps in (1, 2, 4, 6, 8, "inf"):
        add(f"distance error at {steps}", "edges", str(steps), "distance")
    for steps in (1, 2, 4, 6, 8):
        add(f"walks that fail at {steps}", "walks", str(steps), "failure")
    first = next(iter(errors.values()))
    for part in ("plans", "generator"):
        for name in first[part]:
            add(name.replace("_", " "), part, name)
    return table


def accuracy_table(accuracy: dict[str, dict[str, float]]) -> Table:
    """A row per set of tasks: how often the agent's cell is decoded right, seen and some steps after that."""
    names = list(dict.fromkeys(name for shares in accuracy.values() for name in shares if name.startswith("cell_")))
    columns = [name.removeprefix("cell_").replace("imagined_", "+") for name in names]
    table = narrow_table(["cell decoded right"], columns)
    for tasks, shares in accuracy.items():
        table.add_row(tasks, *(f"{shares[name]:.2f}" if name in shares else "-" for name in names))
    return table


def endings_table(accuracy: dict[str, dict[str, float]]) -> Table:
    """Two rows per set of tasks: how likely it seems that episodes go on, where they do and where they end."""
    names = dict.fromkeys(name for shares in accuracy.values() for name in shares if not name.startswith("cell_"))
    seen = dict.fromkeys(name.split("_")[1] for name in names)
    table = narrow_table(["foreseen to go on"], [f"{number} seen" for number in seen])
    for tasks, shares in accuracy.items():
        for what in ("lives", "ends"):
            values = [shares.get(f"{what}_{number}") for number in seen]
            table.add_row(f"{tasks}, {what}", *("-" if value is None else f"{value:.2f}" for value in values))
    return table


def show_measurements(result: dict[str, Any], as_json: bool) -> None:
    """Print measurements as one JSON object, or the machine and then one per line."""
    if as_json:
        print(json.dumps(result, indent=2))
        return
    console, table = Console(highlight=False), narrow_table(["what"], ["measured"])
    if machine := result.get("machine"):
        console.print(", ".join(f"{name} {value}" for name, value in machine.items()))
    for name, value in result.items():
        if name == "machine":
            continue
        parts = value if isinstance(value, dict) else {"": value}
        for part, number in parts.items():
            label = f"{name} {part}".replace("_", " ").strip()
            table.add_row(label, f"{number:,.4g}" if isinstance(number, float) else str(number))
    console.print(table)
