import csv
import json
import sys
from pathlib import Path

import pytest

from skipper.cli import main
from skipper.training.recorder import EVALUATIONS, METRICS

RUN = {
    EVALUATIONS: [
        {"step": 0, "training": {"success": 0.5, "deaths": 0.5}, "0.25": {"success": 0.25, "deaths": 0.75}},
        {"step": 9, "training": {"success": 1.0, "deaths": 0.0}, "0.25": {"success": 0.75, "deaths": 0.25}},
    ],
    METRICS: [{"step": 4, "episodes": 3}, {"step": 8, "episodes": 2, "loss": 0.1234567890123456}],
}


@pytest.fixture
def run(tmp_path):
    for name, records in RUN.items():
        (tmp_path / name).write_text("".join(json.dumps(record) + "\n" for record in records))
    return tmp_path


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("elsewhere", [False, True])
def test_records_become_tables(run, elsewhere, monkeypatch, capsys):
    folder = run / "new" / "tables" if elsewhere else run
    monkeypatch.setattr(sys, "argv", ["skipper", "export", "csv", str(run), *(["--out", str(folder)] * elsewhere)])
    main()
    assert capsys.readouterr().out.count("wrote ") == 2
    assert rows(folder / "metrics.csv") == [
        {"step": "4", "episodes": "3", "loss": ""},
        {"step": "8", "episodes": "2", "loss": "0.1234567890123456"},
    ]
    evaluations = rows(folder / "evaluations.csv")
    assert [tuple(row.values()) for row in evaluations] == [
        ("0", "training", "0.5", "0.5"),
        ("0", "0.25", "0.25", "0.75"),
        ("9", "training", "1.0", "0.0"),
        ("9", "0.25", "0.75", "0.25"),
    ]


def test_what_is_no_run_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["skipper", "export", "csv", str(tmp_path), "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit, match=r"is not a run folder: it has no config\.json"):
        main()
    assert not (tmp_path / "out").exists()
