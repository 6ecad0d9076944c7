"""Folders outlive versions: those of schema 1 load, resume and keep their identity.

``tests/data/schema1`` was written by the last version of that schema: runs of 600 steps, interrupted at step 400.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import skipper
from skipper.agents.skipper.config import SkipperConfig
from skipper.training.run import train
from skipper.training.run_folder import read_config, read_stamp, read_weights

ROOT = Path(__file__).parents[2]
OLD = ROOT / "tests" / "data" / "schema1"
NAMES = sorted(path.name for path in OLD.iterdir())
COMMITTED = sorted(
    path.parent for place in ("results", "skipper/pretrained") for path in (ROOT / place).rglob("config.json")
)


def test_there_is_one_of_each_kind():
    assert NAMES == ["modelfree", "skipper-fast", "skipper-once", "skipper-stream"]


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_committed_configuration_is_read(path):
    written = json.loads((path / "config.json").read_text())["config"]
    config = read_config(path)
    assert (config.agent, config.seed, config.steps) == (written["agent"], written["seed"], written["steps"])


@pytest.mark.parametrize("path", [*COMMITTED, *(OLD / name for name in NAMES)], ids=lambda path: path.name)
def test_agents_imagine_and_plan_when_they_did(path):
    entry, config = json.loads((path / "config.json").read_text()), read_config(path)
    if not isinstance(config, SkipperConfig) or entry.get("schema", 1) > 2:
        return
    when = {"once": (False, "trigger"), "trigger": (True, "trigger"), "step": (True, "step")}
    planning = config.planning
    assert (planning.regenerate, planning.replan) == when[entry["config"]["planning"]["regenerate"]]
    assert (planning.cluster_current_state, planning.replan_after_exploring) == (True, False)


def test_values_survive_their_new_names():
    config = read_config(OLD / "skipper-fast")
    planning, learning = config.planning, config.learning
    assert (planning.edge_length_penalty, planning.match_observations) == (0.03, True)
    assert config.decision.revisit_penalty == 0.5
    assert (learning.training_targets, learning.ema_decay, learning.updater_process) == ("random", 0.9, True)
    assert (config.world.difficulties, config.env) == ((0.25, 0.35, 0.45, 0.55), "lava")
    assert read_config(OLD / "skipper-stream").world.slip == 0.1


@pytest.mark.parametrize("name", NAMES)
def test_an_old_folder_resumes_to_its_end_and_loads(name, tmp_path):
    run = tmp_path / name
    shutil.copytree(OLD / name, run)
    before = (run / "config.json").read_bytes()
    config, step = read_config(run), (run / "checkpoints").glob("step-*")
    assert [path.name for path in step] == ["step-000000000400.safetensors"]
    loaded = skipper.load(run)
    assert loaded.config == config
    assert train(config, run)
    assert (run / "config.json").read_bytes() == before  # the run keeps its identity
    steps = [json.loads(line)["step"] for line in (run / "evaluations.jsonl").read_text().splitlines()]
    assert steps == [0, 300, 600]
    assert (run / "evaluations.jsonl").read_text().startswith((OLD / name / "evaluations.jsonl").read_text()[:400])
    assert all(np.isfinite(array).all() for array in read_weights(run).values())
    assert (run / "checkpoints" / "step-000000000600.safetensors").exists()
    assert read_stamp(run).run == json.loads(before)["hash"]
    assert train(config, run)  # and the checkpoint that was written now is read too
