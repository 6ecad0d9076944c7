"""An archive: small, complete without weights, and an output folder itself."""

import json
import shutil
import sys

import numpy as np
import pytest
from fake_experiment import fake_works

from skipper.cli import main
from skipper.experiments.archive import archive
from skipper.experiments.define import Scale, missing, works_of
from skipper.experiments.paper import ITEMS
from skipper.experiments.results import find, read_experiments, remember, tables
from skipper.experiments.works import resolve
from skipper.training.run_folder import RunFolder

ITEM, SCALE = ITEMS["fig-50-tasks"], Scale(seeds=2, steps=4_000)
WORKS = works_of(ITEM, SCALE)


def run_command(monkeypatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["skipper", *arguments])
    main()


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
    kinds = {path.suffix or path.name for path in target.rglob("*") if path.is_file()}
    assert kinds == {"ARCHIVE", ".json", ".jsonl", ".md", ".html", ".csv", ".png", ".svg"}
    assert all(work.recorded(target) for work in WORKS)
    assert not any(work.finished(target) for work in WORKS if work.needs is None)


def test_its_tables_are_those_of_the_runs(folders):
    first, second = (tables(ITEM, find(ITEM, SCALE, folder)) for folder in folders)
    assert first == second
    text = (folders[1] / ITEM.name / "report.md").read_text()
    assert "18 of 18 runs are there" in text
    assert "--out runs/paper/runs/modelfree" in text


def test_it_remembers_which_agents_were_asked_for(folders, tmp_path):
    scale = Scale(seeds=2, agents=("skipper-once", "leap"))
    remember(tmp_path / "out", "fig-slip", scale)
    assert read_experiments(tmp_path / "out") == {"fig-slip": scale}
    fake_works(works_of(ITEMS["fig-slip"], scale), tmp_path / "out", {})
    archive(tmp_path / "out", tmp_path / "archive")
    index = (tmp_path / "archive" / "README.md").read_text()
    scope = "fast, training seeds 41 to 42 (skipper-once), 33 to 34 (leap); without skipper-regen, modelfree, director"
    assert f"| [8 of 8](fig-slip/report.md) | {scope} |" in index
    assert f"Preset {scope}." in (tmp_path / "archive" / "fig-slip" / "report.md").read_text()


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
    agents = "skipper-once, skipper-regen, director"
    scope = f"fast with 4,000 steps, training seeds 41 to 42 ({agents})"
    assert f"| [18 of 18]({ITEM.name}/report.md) | {scope}" in rows[ITEM.name]
    assert "0 of 18" in rows["fig-slip"]
    assert rows["fig-1-tasks"].endswith("| not run |  |")


@pytest.fixture
def copy(folders, tmp_path):
    """The archive, to be damaged."""
    shutil.copytree(folders[1], tmp_path / "copy")
    return tmp_path / "copy"


def test_what_is_evaluated_is_not_trained_again_for_its_weights(copy):
    assert missing(WORKS, copy) == []
    assert missing(WORKS, copy, weights=True) == [work for work in WORKS if work.needs is None]
    evaluation = WORKS[-1]
    evaluation.file(copy).unlink()
    assert missing(WORKS, copy) == [evaluation.needs, evaluation]


def test_a_run_without_records_is_made_again(copy):
    training = WORKS[0]
    (training.folder(copy) / "evaluations.jsonl").unlink()
    assert missing(WORKS, copy) == [work for work in WORKS if training in (work, work.needs)]


@pytest.mark.parametrize("item", [ITEM.name, "fig-1-tasks"])
def test_nothing_is_trained_in_an_archive(item, copy, monkeypatch):
    WORKS[-1].file(copy).unlink()
    arguments = ["reproduce", item, "--seeds", "2", "--steps", "4000", "--out", str(copy)]
    before = {path: path.read_bytes() for path in copy.rglob("*.jsonl")}
    with pytest.raises(SystemExit, match="is an archive, in which nothing is trained"):
        run_command(monkeypatch, *arguments)
    assert {path: path.read_bytes() for path in copy.rglob("*.jsonl")} == before


def test_its_reports_can_be_made_again(copy, monkeypatch):
    report, index = copy / ITEM.name / "report.csv", copy / "README.md"
    before = report.read_text(), index.read_text()
    report.unlink()
    index.unlink()
    run_command(monkeypatch, "report", str(copy), "--archive", str(copy))
    assert (report.read_text(), index.read_text()) == before


def test_evaluations_of_other_weights_are_neither_reported_nor_archived(folders, tmp_path):
    root = tmp_path / "out"
    shutil.copytree(folders[0], root)
    evaluation = next(work for work in WORKS if work.needs is not None and work.needs.agent == "modelfree")
    training = evaluation.needs
    with RunFolder(training.folder(root), resolve(training)) as folder:
        folder.save_weights(resolve(training).steps, {"weight": np.ones(5)})
    assert missing(WORKS, root) == [evaluation]
    archive(root, tmp_path / "archive")
    assert "17 of 18 runs are there" in (tmp_path / "archive" / ITEM.name / "report.md").read_text()
    assert not evaluation.file(tmp_path / "archive").exists()


def test_a_lost_training_is_made_again_with_its_evaluations(folders, tmp_path):
    shutil.copytree(folders[0], tmp_path / "out")
    once = [work for work in WORKS if work.needs is not None and work.needs.agent == "skipper-regen"]
    shutil.rmtree(once[0].needs.folder(tmp_path / "out"))
    again = missing(WORKS, tmp_path / "out")
    assert again == [work for work in WORKS if once[0].needs in (work, work.needs)]
    assert len(again) == 3  # skipper-once and skipper-regen play with these networks
    assert missing(again, tmp_path / "out") == again


def test_the_same_scale_in_other_words_is_the_same(copy, monkeypatch, capsys):
    agents = ["skipper-regen", "leap", "director", "modelfree", "skipper-once"]
    chosen = ["--seeds", "2", "--steps", "4000", "--agents", *agents, "--out", str(copy)]
    run_command(monkeypatch, "reproduce", ITEM.name, *chosen)
    assert f"all 18 runs of {ITEM.name} are there: nothing to do; see {copy / ITEM.name}" in capsys.readouterr().out
    assert not (copy / "report.html").exists()


def test_a_second_output_folder_is_added(copy, tmp_path):
    root, item, scale = tmp_path / "other", ITEMS["fig-leap-suppress"], Scale(seeds=1, steps=4_000)
    remember(root, item.name, scale)
    fake_works(works_of(item, scale), root, {})
    entry = {"run": "a-run-of-no-item", "outcome": "failed", "seconds": 3.0, "node": "", "error": "full"}
    (root / "history.jsonl").write_text(json.dumps(entry) + "\n")
    archive(root, copy)
    lines = (copy / "README.md").read_text().splitlines()
    assert sum("18 of 18" in line or "4 of 4" in line for line in lines) == 2
    assert "No run has failed." in (copy / item.name / "report.md").read_text()
    assert (copy / "history.jsonl").read_text().count("a-run-of-no-item") == 1


def test_a_run_without_metrics_can_be_archived(folders, tmp_path):
    root = tmp_path / "out"
    shutil.copytree(folders[0], root)
    training = WORKS[0]
    (training.folder(root) / "metrics.jsonl").unlink()
    archive(root, tmp_path / "archive")
    assert training.recorded(tmp_path / "archive")
    assert missing(WORKS, tmp_path / "archive") == []


def test_pictures_are_kept(tmp_path):
    root, folder, item = tmp_path / "out", tmp_path / "archive", ITEMS["pictures"]
    remember(root, item.name, SCALE)
    fake_works(works_of(item, SCALE), root, {})
    (root / "figures").mkdir()
    (root / "figures" / "pictures-proxy.png").write_bytes(b"a picture")
    archive(root, folder)
    assert "figures/pictures-proxy.png" in (folder / item.name / "report.md").read_text()


def test_an_item_at_another_scale_is_refused(copy, tmp_path):
    remember(tmp_path / "other", ITEM.name, Scale(seeds=1))
    before = (copy / "experiments.json").read_text()
    with pytest.raises(ValueError, match="holds fig-50-tasks with other agents, seeds, steps or preset"):
        archive(tmp_path / "other", copy)
    assert (copy / "experiments.json").read_text() == before


def test_more_agents_and_seeds_of_an_item_are_added(tmp_path):
    few, more = Scale(seeds=1, agents=("leap",)), Scale(seeds=2)
    for scale in (few, more):
        remember(tmp_path / "out", "fig-leap-suppress", scale)
        fake_works(works_of(ITEMS["fig-leap-suppress"], scale), tmp_path / "out", {})
        archive(tmp_path / "out", tmp_path / "archive")
    assert "[8 of 8](fig-leap-suppress/report.md)" in (tmp_path / "archive" / "README.md").read_text()


def test_an_archive_keeps_the_scale_of_its_items(copy, monkeypatch):
    before = (copy / "experiments.json").read_text()
    chosen = ["--seeds", "2", "--steps", "4000", "--agents", "leap", "--out", str(copy)]
    with pytest.raises(SystemExit, match="is an archive"):
        run_command(monkeypatch, "reproduce", ITEM.name, *chosen)
    assert (copy / "experiments.json").read_text() == before


def test_a_folder_of_something_else_is_refused(folders, tmp_path):
    (tmp_path / "README.md").write_text("precious")
    with pytest.raises(ValueError, match="neither empty nor an archive"):
        archive(folders[0], tmp_path)
    assert (tmp_path / "README.md").read_text() == "precious"


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no experiment"):
        archive(tmp_path, tmp_path / "archive")
