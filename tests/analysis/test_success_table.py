"""Tables of success rates say what the files say."""

import json
from pathlib import Path

import pytest

from skipper.analysis.success_table import read_rows, success_table


def write(path: Path, seed: int, evaluation_seed: int = 20, **outcomes: str) -> None:
    about = {"agent": "a", "env": "lava", "split": "evaluation", "evaluation_seed": evaluation_seed, "seed": seed}
    sets = {
        name: {"success": letters.count("s") / len(letters), "episodes": len(letters), "outcomes": letters}
        for name, letters in outcomes.items()
    }
    path.write_text(json.dumps({"about": about | {"weights": str(seed)}, "sets": sets}))


def test_a_row_holds_means_over_seeds_and_the_worst_of_them(tmp_path):
    write(tmp_path / "one-20.json", 20, easy="ssss", hard="ssdd", training="ss")
    write(tmp_path / "one-21.json", 21, easy="sssd", hard="sddd", training="sd")
    (tmp_path / "table.json").write_text(json.dumps({"agent A": "one-*.json"}))
    table = success_table(read_rows(tmp_path / "table.json"))
    assert table.splitlines() == [
        "|  | easy | hard | mean | worst seed | training tasks |",
        "|---|---|---|---|---|---|",
        "| agent A | 0.875 | 0.375 | **0.625** | 0.500 | 0.750 |",
    ]


def test_a_pattern_without_files_and_a_file_without_rows_are_refused(tmp_path):
    rows = tmp_path / "table.json"
    rows.write_text('{"agent A": "none-*.json"}')
    with pytest.raises(ValueError, match="no file matches 'none"):
        read_rows(rows)
    rows.write_text("[1]")
    with pytest.raises(ValueError, match="names and patterns"):
        read_rows(rows)


def test_rows_of_different_tasks_are_refused(tmp_path):
    rows = tmp_path / "table.json"
    rows.write_text('{"agent A": "one.json", "agent B": "two.json"}')
    write(tmp_path / "one.json", 20, easy="ss", training="ss")
    for other in ({"easy": "sss"}, {"hard": "ss"}, {"easy": "ss", "evaluation_seed": 21}):
        write(tmp_path / "two.json", 21, training="ss", **other)
        with pytest.raises(ValueError, match="different tasks"):
            success_table(read_rows(rows))
