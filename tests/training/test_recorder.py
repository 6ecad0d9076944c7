import json

import pytest

from skipper.training.recorder import EVALUATIONS, METRICS, Recorder, read_evaluations


def lines(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_records_are_json_lines_and_tensorboard_events(tmp_path):
    recorder = Recorder(tmp_path, None, 0)
    recorder.evaluation(5, {"training": {"success": 0.5}, "0.25": {"success": 0.25}})
    recorder.metrics(7, {"loss": 1.5})
    recorder.close()
    assert lines(tmp_path / EVALUATIONS) == [{"step": 5, "training": {"success": 0.5}, "0.25": {"success": 0.25}}]
    assert lines(tmp_path / METRICS) == [{"step": 7, "loss": 1.5}]
    assert list((tmp_path / "tensorboard").iterdir())


def test_a_resumed_run_takes_back_what_its_checkpoint_did_not_know(tmp_path):
    recorder = Recorder(tmp_path, None, 0)
    recorder.metrics(1, {"loss": 1.0})
    position = recorder.position()
    recorder.metrics(2, {"loss": 2.0})
    recorder.evaluation(2, {"training": {"success": 0.5}})
    recorder.close()
    recorder = Recorder(tmp_path, position, 1)
    recorder.metrics(2, {"loss": 3.0})
    recorder.close()
    assert [record["loss"] for record in lines(tmp_path / METRICS)] == [1.0, 3.0]
    assert lines(tmp_path / EVALUATIONS) == []


def test_a_new_run_begins_with_empty_files(tmp_path):
    (tmp_path / METRICS).write_text("left over\n")
    Recorder(tmp_path, None, 0).close()
    assert (tmp_path / METRICS).read_text() == ""


def test_a_shortened_file_is_noticed(tmp_path):
    with pytest.raises(ValueError, match="shorter than its checkpoint says"):
        Recorder(tmp_path, {EVALUATIONS: 10, METRICS: 0}, 1)


def test_evaluations_are_read_back(tmp_path):
    with pytest.raises(ValueError, match="not a run folder"):
        read_evaluations(tmp_path)
    recorder = Recorder(tmp_path, None, 0)
    with pytest.raises(ValueError, match="not been evaluated"):
        read_evaluations(tmp_path)
    recorder.evaluation(5, {"training": {"success": 0.5}})
    recorder.close()
    assert read_evaluations(tmp_path) == [{"step": 5, "training": {"success": 0.5}}]
    (tmp_path / EVALUATIONS).write_text("{half")
    with pytest.raises(ValueError, match="not every line is JSON"):
        read_evaluations(tmp_path)


def test_positions_are_right_before_anything_new_is_written(tmp_path):
    recorder = Recorder(tmp_path, None, 0)
    recorder.metrics(1, {"loss": 1.0})
    recorder.close()
    recorder = Recorder(tmp_path, None, 0)
    assert recorder.position() == {EVALUATIONS: 0, METRICS: 0}
    recorder.close()


@pytest.mark.parametrize("position", [{"../elsewhere": 0}, {EVALUATIONS: 0}, {EVALUATIONS: "0", METRICS: 0}])
def test_positions_of_other_files_are_refused(tmp_path, position):
    with pytest.raises(ValueError, match="does not hold the lengths"):
        Recorder(tmp_path, position, 0)
    assert not (tmp_path.parent / "elsewhere").exists()
