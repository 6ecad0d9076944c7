import json
import re
from dataclasses import replace

import numpy as np
import pytest

from skipper.training.run_folder import (
    CONFIG,
    RunFolder,
    kept_steps,
    read_config,
    read_weights,
    weights_file,
    weights_identity,
)
from skipper.training.settings import configure
from skipper.training.state_file import DamagedFileError, write_state

DEBUG = configure("debug", "modelfree")
OTHER = replace(DEBUG, seed=1, learning=replace(DEBUG.learning, batch_size=7))


def test_the_configuration_is_saved_and_read_back(tmp_path):
    with RunFolder(tmp_path / "run", DEBUG):
        assert read_config(tmp_path / "run") == DEBUG
    with RunFolder(tmp_path / "run", DEBUG):
        pass


def test_another_configuration_is_refused_with_the_differing_fields(tmp_path):
    with RunFolder(tmp_path, DEBUG):
        pass
    with pytest.raises(ValueError, match=r"seed: 0 -> 1; learning.batch_size: 16 -> 7"), RunFolder(tmp_path, OTHER):
        pass
    with RunFolder(tmp_path, DEBUG):  # the refusal let go of the folder
        pass


def test_a_second_process_is_refused(tmp_path):
    refused = pytest.raises(ValueError, match="in use by another process")
    with RunFolder(tmp_path, DEBUG), refused, RunFolder(tmp_path, DEBUG):
        pass
    with RunFolder(tmp_path, DEBUG):
        pass


def latest(folder: RunFolder) -> tuple[dict | None, list[str]]:
    states: list[dict] = []
    found, refused = folder.restore_latest(states.append)
    return (states[-1] if found else None), refused


def names(path) -> list[str]:
    return sorted(file.name for file in (path / "checkpoints").iterdir())


def test_the_last_two_checkpoints_are_kept_and_the_newest_good_one_is_used(tmp_path):
    with RunFolder(tmp_path, DEBUG) as folder:
        assert latest(folder) == (None, [])
        for step in (10, 20, 30):
            folder.save_checkpoint(step, {"value": np.array([step])})
        assert names(tmp_path) == ["step-000000000020.safetensors", "step-000000000030.safetensors"]
        state, refused = latest(folder)
        assert (state["value"].item(), refused) == (30, [])
        newest = tmp_path / "checkpoints" / "step-000000000030.safetensors"
        newest.write_bytes(newest.read_bytes()[:-3])
        state, refused = latest(folder)
        assert state["value"].item() == 20
        assert len(refused) == 1
        assert newest.name in refused[0]
        # What was refused is put aside: it must not push the good ones out.
        folder.save_checkpoint(25, {"value": np.array([25])})
        assert names(tmp_path) == [
            "step-000000000020.safetensors",
            "step-000000000025.safetensors",
            "step-000000000030.refused",
        ]
        assert latest(folder)[0]["value"].item() == 25


def test_where_no_checkpoint_is_good_nothing_is_touched(tmp_path):
    with RunFolder(tmp_path, DEBUG) as folder:
        folder.save_checkpoint(10, {"value": 1})
        (tmp_path / "checkpoints" / "step-000000000010.safetensors").write_bytes(b"rubbish")
        for _ in range(2):
            with pytest.raises(DamagedFileError, match="no checkpoint can be used"):
                latest(folder)


def test_a_state_that_does_not_fit_is_refused_and_the_one_before_it_is_used(tmp_path):
    def restore(state: dict) -> None:
        restored.append(state["old name"])

    restored: list[int] = []
    with RunFolder(tmp_path, DEBUG) as folder:
        folder.save_checkpoint(10, {"old name": 1})
        folder.save_checkpoint(20, {"new name": 2})
        found, refused = folder.restore_latest(restore)
    assert (found, restored) == (True, [1])
    assert "does not fit this version" in refused[0]


@pytest.mark.parametrize(
    "entry", [{"run": "x"}, {"run": 1, "step": 1, "state": {}}, {"run": "x", "step": "1", "state": {}}]
)
def test_whole_files_with_other_content_are_refused(tmp_path, entry):
    with RunFolder(tmp_path, DEBUG) as folder:
        write_state(tmp_path / "checkpoints" / "step-000000000010.safetensors", "checkpoint", entry)
        with pytest.raises(DamagedFileError, match="does not hold what a checkpoint"):
            latest(folder)
        write_state(tmp_path / "weights.safetensors", "weights", entry)
    with pytest.raises(DamagedFileError, match="does not hold what a weights"):
        read_weights(tmp_path)


def test_foreign_and_renamed_checkpoints_are_refused(tmp_path):
    with RunFolder(tmp_path / "one", DEBUG) as one, RunFolder(tmp_path / "two", OTHER) as two:
        one.save_checkpoint(10, {"value": 1})
        two.save_checkpoint(20, {"value": 2})
        folders = [tmp_path / name / "checkpoints" for name in ("one", "two")]
        (folders[1] / "step-000000000020.safetensors").rename(folders[0] / "step-000000000020.safetensors")
        state, refused = latest(one)
        assert state == {"value": 1}
        assert "belongs to another run" in refused[0]
        (folders[0] / "step-000000000010.safetensors").rename(folders[0] / "step-000000000020.safetensors")
        with pytest.raises(DamagedFileError, match="is the checkpoint of step 10 under another name"):
            latest(one)


def test_a_folder_with_someone_elses_files_is_left_alone(tmp_path):
    (tmp_path / "metrics.jsonl").write_text("precious")
    with pytest.raises(ValueError, match=r"not empty \(it holds 'metrics.jsonl'\)"), RunFolder(tmp_path, DEBUG):
        pass
    assert (tmp_path / "metrics.jsonl").read_text() == "precious"


def test_what_a_killed_process_left_half_written_is_cleared_away(tmp_path):
    with RunFolder(tmp_path, DEBUG):
        pass
    torn = tmp_path / "checkpoints" / ".step-000000000010.safetensors.partial"
    torn.write_bytes(b"half")
    with RunFolder(tmp_path, DEBUG):
        assert not torn.exists()


def test_weights_must_belong_to_the_configuration(tmp_path):
    with RunFolder(tmp_path / "one", DEBUG) as one, RunFolder(tmp_path / "two", OTHER):
        one.save_weights(10, {"a": np.ones(2)})
    assert read_weights(tmp_path / "one")["a"].tolist() == [1, 1]
    (tmp_path / "one" / "weights.safetensors").rename(tmp_path / "two" / "weights.safetensors")
    with pytest.raises(DamagedFileError, match="belongs to another run"):
        read_weights(tmp_path / "two")


def test_equal_weights_have_the_same_identity_in_every_run(tmp_path):
    weights = {"a": np.ones(2), "b": np.zeros(3)}
    with RunFolder(tmp_path / "one", DEBUG) as one, RunFolder(tmp_path / "two", OTHER) as two:
        one.save_weights(10, weights)
        two.save_weights(20, weights)
        first, second = (weights_identity(tmp_path / name) for name in ("one", "two"))
        assert (first.step, second.step) == (10, 20)
        assert first.digest == second.digest
        assert re.fullmatch("[0-9a-f]{16}", first.digest)
        one.save_weights(10, weights | {"b": np.ones(3)})
    assert weights_identity(tmp_path / "one").digest != first.digest


def test_a_changed_configuration_file_is_noticed(tmp_path):
    with RunFolder(tmp_path, DEBUG):
        pass
    entry = json.loads((tmp_path / CONFIG).read_text())
    entry["config"]["seed"] = 5
    (tmp_path / CONFIG).write_text(json.dumps(entry))
    with pytest.raises(DamagedFileError, match="was changed"):
        read_config(tmp_path)
    with pytest.raises(ValueError, match="not a run folder"):
        read_config(tmp_path / "nowhere")


def test_an_edited_identity_is_noticed(tmp_path):
    with RunFolder(tmp_path, DEBUG):
        pass
    entry = json.loads((tmp_path / CONFIG).read_text())
    entry["hash"] = "0" * 16
    (tmp_path / CONFIG).write_text(json.dumps(entry, indent=2) + "\n")
    with pytest.raises(DamagedFileError, match="does not match its digest"):
        read_config(tmp_path)


def test_the_weights_of_every_evaluation_are_kept_where_that_is_wanted(tmp_path):
    keeping = replace(DEBUG, evaluation=replace(DEBUG.evaluation, keep_weights=True))
    for name, config in (("kept", keeping), ("newest", DEBUG)):
        with RunFolder(tmp_path / name, config) as folder:
            for step in (0, 10):
                folder.save_weights(step, {"w": np.array([step])})
    assert (kept_steps(tmp_path / "kept"), kept_steps(tmp_path / "newest")) == ([0, 10], [])
    assert read_weights(tmp_path / "kept", 0)["w"] == 0
    assert read_weights(tmp_path / "kept")["w"] == 10
    assert weights_identity(tmp_path / "kept", 10) == weights_identity(tmp_path / "kept")
    with pytest.raises(ValueError, match="not keep the weights of step 5; available: 0, 10"):
        read_weights(tmp_path / "kept", 5)
    with pytest.raises(ValueError, match="available: none; train with --keep-weights"):
        read_weights(tmp_path / "newest", 10)
    first, second = (weights_file(tmp_path / "kept", step) for step in (0, 10))
    first.write_bytes(second.read_bytes())
    with pytest.raises(DamagedFileError, match="weights of step 10 under another name"):
        read_weights(tmp_path / "kept", 0)
