"""Records that are sent to a tracker: all of them once, whatever happens to the run, which stays the same."""

import json
import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import pytest

from skipper.training.recorder import EVALUATIONS, METRICS, Recorder, read_records, scalars
from skipper.training.run import Silence, Stop, train
from skipper.training.settings import configure
from skipper.training.tracking import TRACKING, Tracker, need_library

SHORT = replace(configure("debug", "modelfree"), steps=600, record_every=100, checkpoint_every=200)


class FakeRun:
    """Takes what is logged, as the library's run does."""

    def __init__(self, logged: list, id: str) -> None:  # noqa: A002  the library's word
        self.id, self._logged = id, logged

    def define_metric(self, *_: str, **__: str) -> None:
        pass

    def log(self, values: dict, step: int) -> None:
        self._logged.append((self.id, step, values))

    def finish(self) -> None:
        self._logged.append((self.id, None, {}))


@pytest.fixture
def logged(monkeypatch):
    """What a stand-in of the library is given."""
    found: list = []
    fake = ModuleType("wandb")
    fake.__spec__ = ModuleSpec("wandb", None)
    fake.Error = RuntimeError
    fake.Settings = SimpleNamespace
    fake.init = lambda **given: FakeRun(found, given["id"])
    monkeypatch.setitem(sys.modules, "wandb", fake)
    return found


def sent(logged: list) -> list[dict]:
    return [values for _, step, values in logged if step is not None]


def test_an_interrupted_run_sends_every_record_once(tmp_path, logged):
    first = Tracker("wandb", tmp_path, SHORT)
    recorder = Recorder(tmp_path, None, 0)
    recorder.track(first)
    recorder.evaluation(0, {"0.25": {"success": 0.25}})
    recorder.metrics(1, {"loss": 1.0})
    position = recorder.position()
    recorder.metrics(2, {"loss": 2.0})  # after the checkpoint: the resumed run records it again
    recorder.close()  # killed: the tracker is not closed
    recorder = Recorder(tmp_path, position, 1)
    recorder.track(Tracker("wandb", tmp_path, SHORT))
    recorder.metrics(2, {"loss": 2.0})
    recorder.metrics(3, {"loss": 3.0})
    recorder.close()
    assert sent(logged) == [
        {"step": 0, "success/0.25": 0.25},
        *({"step": step, "training/loss": float(step)} for step in (1, 2, 3)),
    ]
    assert len({name for name, _, _ in logged}) == 1
    assert [step for _, step, _ in logged] == [0, 1, 2, 3]


def test_what_was_recorded_without_a_tracker_is_sent_first(tmp_path, logged):
    recorder = Recorder(tmp_path, None, 0)
    recorder.metrics(1, {"loss": 1.0})
    recorder.evaluation(1, {"0.25": {"success": 0.5}})
    recorder.metrics(2, {"loss": 2.0})
    position = recorder.position()
    recorder.close()
    recorder = Recorder(tmp_path, position, 2)
    recorder.track(Tracker("wandb", tmp_path, SHORT))
    recorder.metrics(3, {"loss": 3.0})
    recorder.close()
    assert [values["step"] for values in sent(logged)] == [1, 1, 2, 3]
    Recorder(tmp_path, position, 2).close()
    recorder = Recorder(tmp_path, position, 2)
    recorder.track(Tracker("wandb", tmp_path, SHORT))
    recorder.close()
    assert len(sent(logged)) == 4


@pytest.mark.parametrize(
    "text", ["{half", "[]", '{"id": 3, "sent": {}}', '{"id": "a", "sent": {"x": "1"}}', '{"id": "a"}']
)
def test_a_damaged_file_is_refused(text, tmp_path, logged):
    (tmp_path / TRACKING).write_text(text)
    with pytest.raises(ValueError, match=r"tracking\.json is damaged; without it, the run is logged anew"):
        Tracker("wandb", tmp_path, SHORT)


def test_a_refusal_of_the_library_is_one_line(tmp_path, logged, monkeypatch):
    def refuse(**_: object) -> None:
        raise RuntimeError("no API key")

    monkeypatch.setattr(sys.modules["wandb"], "init", refuse)
    with pytest.raises(ValueError, match="wandb: no API key; without a connection, set WANDB_MODE=offline"):
        train(SHORT, tmp_path / "run", track="wandb")


def test_a_missing_library_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr("skipper.training.tracking.find_spec", lambda _: None)
    with pytest.raises(ValueError, match=r"pip install 'skipper-rl\[wandb\]'"):
        need_library("wandb")
    with pytest.raises(ValueError, match="not installed"):
        train(SHORT, tmp_path / "run", track="wandb")
    assert not (tmp_path / "run").exists()


class StopHalfway(Silence):
    def __init__(self, stop: Stop) -> None:
        self._stop = stop

    def progress(self, step: int, metrics: dict[str, float]) -> None:
        self._stop.asked = self._stop.asked or step >= 300


def rows_of(run) -> list[tuple[str, dict]]:
    """The rows of all parts of a run that the real library logged offline, with the name of the run."""
    from wandb.proto import wandb_internal_pb2
    from wandb.sdk.internal.datastore import DataStore

    found = []
    for path in sorted(run.glob("wandb/offline-run-*/run-*.wandb"), key=lambda path: path.stat().st_mtime_ns):
        store, name = DataStore(), ""
        store.open_for_scan(str(path))
        while (data := store.scan_data()) is not None:
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            name = record.run.run_id or name
            if record.WhichOneof("record_type") == "history":
                row = {
                    (item.key or "/".join(item.nested_key)): json.loads(item.value_json) for item in record.history.item
                }
                found.append((name, row))
        store.close()
    return found


@pytest.mark.filterwarnings("default")  # of the library
def test_the_real_library_offline_in_two_parts(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    stop = Stop()
    train(SHORT, tmp_path / "plain")
    assert not train(SHORT, tmp_path / "tracked", StopHalfway(stop), stop, track="wandb")
    assert train(SHORT, tmp_path / "tracked", track="wandb")
    for name in ("config.json", EVALUATIONS, "weights.safetensors"):
        assert (tmp_path / "tracked" / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()
    rows = rows_of(tmp_path / "tracked")
    assert len({name for name, _ in rows}) == 1
    assert [row["_step"] for _, row in rows] == list(range(len(rows)))
    for name in (EVALUATIONS, METRICS):
        wanted = [
            {"step": record["step"], **scalars(name, record)} for record in read_records(tmp_path / "tracked", name)
        ]
        logged = [{key: value for key, value in row.items() if key in wanted[-1]} for _, row in rows]
        assert [row for row in logged if len(row) > 1] == wanted
