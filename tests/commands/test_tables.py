"""No table is wider than a terminal of 80 columns, and none breaks its cells over lines."""

import json
import time
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from skipper.analysis.comparison import compare
from skipper.analysis.oracle_substitution import REPLACED
from skipper.analysis.results_file import read_run
from skipper.commands.compare import _sides_table, _tests_table
from skipper.commands.environments import about
from skipper.commands.help import entry
from skipper.commands.pretrained import success_table
from skipper.commands.tables import (
    accuracy_table,
    changes_table,
    endings_table,
    errors_table,
    results_table,
    show_measurements,
)
from skipper.envs.minigrid.catalogue import describe
from skipper.envs.registry import find_family
from skipper.experiments.ablate import PLANNING, changes
from skipper.experiments.execute import Progress
from skipper.experiments.live_table import LiveTable
from skipper.experiments.works import Training
from skipper.training.evaluate import Summary
from skipper.training.pretrained import PRETRAINED, pretrained_names, read_card
from skipper.training.run_folder import read_config

RESULTS = Path(__file__).parents[2] / "results" / "skipper"
SETS = dict.fromkeys(("0.25", "0.35", "0.45", "0.55"), Summary(1.0, 0.991, 1.0, 400, 21.4, 0.003, 1.0))


def render(table, width: int) -> list[str]:
    console = Console(file=StringIO(), width=width)
    console.print(table)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def ablation():
    config = read_config(PRETRAINED / "skipper-regen-50")
    rows = {*PLANNING, *changes(config, find_family(config.env).spec(config.world))}
    return changes_table("changed", dict.fromkeys(rows, SETS))


def endings():
    columns = [f"{what}_{seen}" for seen in (2, 5, 8, 11) for what in ("lives", "ends")]
    return endings_table(dict.fromkeys(("training", *SETS), dict.fromkeys(columns, 1.0)))


def accuracy():
    columns = ("cell_seen", "cell_moved", *(f"cell_imagined_{step}" for step in range(1, 8)))
    return accuracy_table(dict.fromkeys(("training", *SETS), dict.fromkeys(columns, 1.0)))


def comparison(table):
    files = ([RESULTS / "report" / f"{agent}-{seed}-none.json" for seed in (33, 34, 35)] for agent in AGENTS)
    better, worse = ([read_run(file, False) for file in side] for side in files)
    return table(compare(better, worse, np.random.default_rng(0), resamples=200))


AGENTS = ("regen", "modelfree")
TABLES = {
    "evaluate": lambda: results_table({"leap-suppress": {"training": SETS["0.25"], **SETS}}, "difficulty"),
    "demo": lambda: results_table(dict.fromkeys(("random", "optimal", "just now", "pretrained"), SETS), "difficulty"),
    "diagnose": lambda: changes_table("true, not learned", dict.fromkeys(REPLACED, SETS)),
    "diagnose, errors": lambda: errors_table(json.loads((RESULTS / "diagnose.json").read_text())["truth"]),
    "diagnose director": accuracy,
    "diagnose director, endings": endings,
    "ablate": ablation,
    "compare, sides": lambda: comparison(_sides_table),
    "compare, tests": lambda: comparison(_tests_table),
    "pretrained": lambda: success_table({name: read_card(PRETRAINED / name) for name in pretrained_names()}),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_fits_80_columns_as_it_is(name):
    table = TABLES[name]()
    lines = render(table, 80)
    assert len(lines) > 3
    assert max(map(len, lines)) <= 80
    assert lines == render(table, 300)  # nothing was broken over lines or left out


def test_a_table_that_is_too_wide_would_be_noticed():
    table = changes_table("a title", {"a name of far too many letters for a narrow terminal": SETS})
    assert render(table, 80) != render(table, 300)


@pytest.mark.parametrize("file", ["bench-plan-1.json", "bench-train-new-1.json"])
def test_measurements_fit_80_columns(file, monkeypatch, capsys):
    result = json.loads((RESULTS / "report" / file).read_text())
    result["machine"]["processor"] = "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz"
    printed = {}
    for columns in (80, 300):
        monkeypatch.setenv("COLUMNS", str(columns))
        show_measurements(result, as_json=False)
        printed[columns] = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, printed[80])) <= 80
    measured = {
        width: lines[lines.index(next(line for line in lines if "measured" in line)) :]
        for width, lines in printed.items()
    }
    assert measured[80] == measured[300]


def test_the_live_table_fits_80_columns():
    console = Console(file=StringIO(), force_terminal=True, width=80, height=30, color_system=None)
    work = Training("skipper-regen", "fast", 33, (("steps", 800_000), ("tasks", 100), ("difficulty", 0.5)))
    run = Progress(work, "running", done=799_999, done_before=0, began=time.monotonic() - 1e5, node="0123456789")
    with LiveTable(2, console) as table:
        table.show([run])
    (line,) = {line.rstrip() for line in console.file.getvalue().splitlines() if "799,999" in line}
    assert "/ 800,000 │" in line
    assert len(line) <= 80


def test_environments_fit_80_columns():
    for name in ("MiniGrid-DoorKey-5x5-v0", "MiniGrid-GoToDoor-5x5-v0"):
        lines = entry(name, about(describe(name)), 80).splitlines()
        assert name in lines[0]
        assert max(map(len, lines)) <= 80


def test_errors_from_and_to_delusional_vertices_have_rows_of_their_own():
    plans = {"edge_error_from_delusional": 2.0, "edge_error_to_delusional": 0.5, "delusional_target": None}
    errors = {"0.25": {"edges": {}, "walks": {}, "plans": plans, "generator": {}}}
    rows = [line.split() for line in render(errors_table(errors), 100)]
    assert ["edge", "error", "from", "delusional", "2.000"] in rows
    assert ["edge", "error", "to", "delusional", "0.500"] in rows
    assert not any("target" in row for row in rows)


def test_a_set_without_moves_has_no_share_of_them():
    table = accuracy_table({"0.25": {"cell_seen": 1.0}, "0.35": {"cell_seen": 1.0, "cell_moved": 0.5}})
    rows = [line.split() for line in render(table, 80)]
    assert ["0.25", "1.00", "-"] in rows
    assert ["0.35", "1.00", "0.50"] in rows


def test_endings_have_a_row_for_what_lives_and_one_for_what_ends():
    table = endings_table({"0.25": {"cell_seen": 1.0, "lives_2": 0.9, "ends_2": 0.4, "lives_5": 0.8}})
    rows = [line.split() for line in render(table, 80)]
    assert ["0.25,", "lives", "0.90", "0.80"] in rows
    assert ["0.25,", "ends", "0.40", "-"] in rows
