import json
from dataclasses import replace

import numpy as np
import pytest

from skipper.presets import DEBUG
from skipper.training.folder import CONFIG, RunFolder, read_config, read_weights
from skipper.training.verified import DamagedFileError

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


def test_the_last_two_checkpoints_are_kept_and_the_newest_good_one_is_used(tmp_path):
    with RunFolder(tmp_path, DEBUG) as folder:
        assert folder.latest_checkpoint() == (None, [])
        for step in (10, 20, 30):
            folder.save_checkpoint(step, {"value": np.array([step])})
        names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
        assert names == ["step-000000000020.safetensors", "step-000000000030.safetensors"]
        state, refused = folder.latest_checkpoint()
        assert (state["value"].item(), refused) == (30, [])
        newest = tmp_path / "checkpoints" / names[1]
        newest.write_bytes(newest.read_bytes()[:-3])
        state, refused = folder.latest_checkpoint()
        assert state["value"].item() == 20
        assert len(refused) == 1
        assert names[1] in refused[0]
        (tmp_path / "checkpoints" / names[0]).write_bytes(b"rubbish")
        with pytest.raises(DamagedFileError, match="no checkpoint can be used"):
            folder.latest_checkpoint()


def test_foreign_and_renamed_checkpoints_are_refused(tmp_path):
    with RunFolder(tmp_path / "one", DEBUG) as one, RunFolder(tmp_path / "two", OTHER) as two:
        one.save_checkpoint(10, {"value": 1})
        two.save_checkpoint(20, {"value": 2})
        folders = [tmp_path / name / "checkpoints" for name in ("one", "two")]
        (folders[1] / "step-000000000020.safetensors").rename(folders[0] / "step-000000000020.safetensors")
        state, refused = one.latest_checkpoint()
        assert state == {"value": 1}
        assert "belongs to another run" in refused[0]
        (folders[0] / "step-000000000010.safetensors").rename(folders[0] / "step-000000000020.safetensors")
        with pytest.raises(DamagedFileError, match="is the checkpoint of step 10 under another name"):
            one.latest_checkpoint()


def test_weights_must_belong_to_the_configuration(tmp_path):
    with RunFolder(tmp_path / "one", DEBUG) as one, RunFolder(tmp_path / "two", OTHER):
        one.save_weights(10, {"a": np.ones(2)})
    assert read_weights(tmp_path / "one", DEBUG)["a"].tolist() == [1, 1]
    (tmp_path / "one" / "weights.safetensors").rename(tmp_path / "two" / "weights.safetensors")
    with pytest.raises(DamagedFileError, match="belongs to another run"):
        read_weights(tmp_path / "two", read_config(tmp_path / "two"))


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
