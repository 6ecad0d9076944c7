"""An archive: small, complete without weights, and an output folder itself."""

import pytest
from fake_experiment import fake_works

from skipper.experiments.archive import archive
from skipper.experiments.define import Scale, missing, works_of
from skipper.experiments.paper import ITEMS
from skipper.experiments.report import write_report
from skipper.experiments.results import find, remember, tables

ITEM, SCALE = ITEMS["fig-50-tasks"], Scale(seeds=2, steps=4_000)
WORKS = works_of(ITEM, SCALE)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """An output folder with a finished and an unfinished item, and its archive."""
    root, target = (tmp_path_factory.mktemp("archive") / name for name in ("out", "archive"))
    remember(root, ITEM.name, SCALE)
    remember(root, "fig-slip", SCALE)
    fake_works(WORKS, root, {})
    archive(root, target)
    return root, target


def test_it_holds_everything_but_weights(folders):
    _, target = folders
    kinds = {path.suffix for path in target.rglob("*") if path.is_file()}
    assert kinds == {".json", ".jsonl", ".md", ".html", ".csv", ".png", ".svg"}
    assert all(work.recorded(target) for work in WORKS)
    assert not any(work.finished(target) for work in WORKS if work.needs is None)


def test_its_tables_are_those_of_the_runs(folders):
    first, second = (tables(ITEM, find(ITEM, SCALE, folder)) for folder in folders)
    assert first == second
    text = (folders[1] / ITEM.name / "report.md").read_text()
    assert "18 of 18 runs are there" in text
    assert "--out runs/paper/runs/modelfree" in text


def test_links_of_an_items_report_lead_to_its_runs(folders):
    page = (folders[1] / ITEM.name / "report.html").read_text()
    links = [part.split('"')[0] for part in page.split('<a href="')[1:]]
    runs = [link for link in links if not link.startswith("#")]
    assert len(runs) == len(WORKS)
    assert all((folders[1] / ITEM.name / link).exists() for link in runs)


def test_the_index_says_what_was_not_run(folders):
    lines = (folders[1] / "README.md").read_text().splitlines()
    rows = {line.split(" | ")[0].strip("| "): line for line in lines if line.startswith("| ")}
    assert set(ITEMS) < set(rows)
    assert rows[ITEM.name].endswith(f"| [18 of 18]({ITEM.name}/report.md) |")
    assert "0 of 18" in rows["fig-slip"]
    assert rows["fig-1-tasks"].endswith("| not run |")


def test_what_is_evaluated_is_not_trained_again_for_its_weights(folders):
    _, target = folders
    assert missing(WORKS, target) == []
    evaluation = WORKS[-1]
    document = evaluation.file(target).read_text()
    evaluation.file(target).unlink()
    assert missing(WORKS, target) == [evaluation.needs, evaluation]
    evaluation.file(target).write_text(document)


def test_its_reports_can_be_made_again(folders):
    _, target = folders
    before = (target / ITEM.name / "report.csv").read_text()
    write_report(target, [ITEM.name], target / ITEM.name)
    assert (target / ITEM.name / "report.csv").read_text() == before


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no experiment"):
        archive(tmp_path, tmp_path / "archive")
