"""The report: complete, self-contained, and without errors in a browser."""

import csv
import json
import shutil
from pathlib import Path

import pytest
from fake_experiment import fake_works

from skipper.experiments.define import Scale, works_of
from skipper.experiments.paper import ITEMS
from skipper.experiments.report import write_report
from skipper.experiments.report_page import Section, to_html
from skipper.experiments.results import find, remember, tables

SHOWN = ("fig-50-tasks", "fig-num-tasks", "tab-once", "fig-suppress", "fig-num-vertices", "failure-rate", "pictures")
RATES = {"skipper-once": 0.8, "skipper-regen": 0.9, "leap": 0.6, "modelfree": 0.5, "director": 0.1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """An output folder with an item of every layout, one of them unfinished."""
    root = tmp_path_factory.mktemp("report") / "out"
    for name in SHOWN:
        scale = Scale(seeds=2, steps=4_000)
        remember(root, name, scale)
        fake_works(works_of(ITEMS[name], scale), root, RATES)
    remember(root, "fig-slip", Scale(seeds=2))
    entry = {"run": "skipper-once-lost", "outcome": "failed", "seconds": 3.0, "node": "", "error": "the <disk> is full"}
    (root / "history.jsonl").write_text(json.dumps(entry) + "\n")
    write_report(root)
    return root


def test_figures_exist_in_both_formats(folder):
    for name in set(SHOWN) - {"tab-once", "pictures"}:
        for suffix in (".png", ".svg"):
            assert (folder / "figures" / f"{name}{suffix}").stat().st_size > 5_000


def test_the_markdown_has_tables_failures_and_commands(folder):
    text = (folder / "report.md").read_text()
    assert "fig:50_envs, fig:50_envs_app of the paper" in text
    assert "| training tasks | against | 0.25 | 0.35 | 0.45 | 0.55 | difference |" in text
    assert text.count("| inf | leap |") == 1
    assert "Failed: skipper-once-lost." in text
    assert "the <disk> is full" in text
    assert "0 of 18 runs are there" in text  # slip was asked for, and not run
    assert "skipper train --agent skipper-regen --preset fast --seed 41 --tasks 50" in text
    assert "torch 2." in text


def test_the_csv_has_a_row_per_seed_and_set(folder):
    with (folder / "report.csv").open() as file:
        rows = list(csv.DictReader(file))
    fifty = [row for row in rows if row["item"] == "fig-50-tasks"]
    assert len(fifty) == 5 * 2 * 5
    assert {row["series"] for row in fifty} == set(RATES)
    seeds = {agent: {row["seed"] for row in fifty if row["series"] == agent} for agent in RATES}
    assert seeds["leap"] == seeds["modelfree"] == {"33", "34"}
    assert seeds["skipper-once"] == seeds["skipper-regen"] == seeds["director"] == {"41", "42"}  # presets changed
    assert all(0 <= float(row["low"]) <= float(row["success"]) <= float(row["high"]) <= 1 for row in rows)


def test_links_lead_to_the_runs(folder):
    page = (folder / "report.html").read_text()
    links = [part.split('"')[0] for part in page.split('<a href="')[1:]]
    runs = [link for link in links if not link.startswith("#")]
    assert len(runs) > 100
    assert all((folder / link).exists() for link in runs)


def test_nothing_can_be_injected():
    hostile = "<script>alert(1)</script>"
    page = to_html(hostile, [Section(hostile, [hostile], details=[(hostile, hostile)])])
    assert "<script" not in page


def test_it_opens_without_errors_and_its_figures_are_there(folder, browser):
    page, complaints = browser.new_page(), []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: complaints.append(asked.url) if asked.url.startswith("http") else None)
    page.goto((folder / "report.html").as_uri())
    assert page.title().startswith("Report of fig-50-tasks, fig-num-tasks")
    sizes = page.evaluate("[...document.images].map(image => [image.complete, image.naturalWidth])")
    assert len(sizes) == len(set(SHOWN) - {"tab-once", "pictures"})
    assert all(complete and width > 400 for complete, width in sizes)
    assert page.locator("section").count() == len(SHOWN) + 3
    assert page.locator("table").count() >= 10
    assert complaints == []


def test_what_is_missing_or_odd_does_not_stop_the_report(tmp_path):
    """A run whose folder is gone, an evaluation in another world, a figure of another item, a failure made good."""
    scale, small = Scale(seeds=2), Scale(seeds=2, agents=("skipper-once", "leap"))
    for name, each in (("fig-50-tasks", scale), ("tab-once", small), ("fig-num-tasks", small)):
        remember(tmp_path, name, each)
    works = works_of(ITEMS["fig-50-tasks"], scale)
    fake_works([*works, *works_of(ITEMS["tab-once"], small)], tmp_path, RATES)
    for path in (tmp_path / "evaluations").glob("*/*.json"):
        if "leap-tasks5-" in str(path):
            document = json.loads(path.read_text())
            document["about"]["world"] = {"width": 8 if "seed33" in str(path) else 12}
            path.write_text(json.dumps(document))
    gone = next(work for work in works if work.needs is None and work.agent == "modelfree")
    shutil.rmtree(gone.folder(tmp_path))
    entry = {"run": works[0].name, "outcome": "failed", "seconds": 3.0, "node": "", "error": "a full disk"}
    (tmp_path / "history.jsonl").write_text(json.dumps(entry) + "\n")
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "tab-once-director-walls.png").write_bytes(b"of another item")
    write_report(tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "17 of 18 runs are there" in text
    assert "No run has failed. 1 tries" in text
    assert "5 training tasks, leap:" in text
    assert "tab-once-director-walls" not in text


def test_agents_are_compared_at_equal_numbers_of_tasks(folder):
    found = find(ITEMS["fig-num-tasks"], Scale(seeds=2, steps=4_000), folder)
    _, *compared = tables(ITEMS["fig-num-tasks"], found)
    assert [table.title.split(" against")[0] for table in compared] == [
        f"skipper-once, {number}" for number in ("1 task", "5 tasks", "25 tasks", "50 tasks", "100 tasks", "inf tasks")
    ]
    assert all(len(table.rows) == 4 for table in compared)
    assert all(row[0].split(", ")[1] in table.title for table in compared for row in table.rows)
