"""Runs as commands: they parse to what they are named by, and tell when they are finished."""

import json
import shlex
from dataclasses import replace

import numpy as np
import pytest
import tyro
from fake_experiment import fake_evaluation, fake_training

from skipper.cli import base_config, chosen_family, commands
from skipper.experiments.define import Scale, works_of
from skipper.experiments.paper import ITEMS
from skipper.experiments.works import COMMON, Evaluation, Training, resolve
from skipper.training.run_folder import RunFolder

SMALL_SETTINGS = {"tasks": 2} | COMMON
SMALL = Training("modelfree", "debug", 33, tuple(SMALL_SETTINGS.items()))


def parse(arguments):
    family = chosen_family(arguments)
    types = commands(base_config(arguments, family), family)
    return tyro.cli(types, args=arguments, config=(tyro.conf.OmitSubcommandPrefixes,))


def different_commands():
    """One run of every combination of agent and options; seeds and numbers of tasks do not change how it parses."""
    found = {}
    for preset in ("fast", "paper"):
        for item in ITEMS.values():
            for work in works_of(item, Scale(seeds=1, preset=preset, steps=5_000)):
                training = isinstance(work, Training)
                settings = work.settings if training else work.play
                kinds = tuple((name, value) for name, value in settings if name not in ("tasks", "max_vertices"))
                key = (training, (work if training else work.training).agent, kinds, *([preset] if training else []))
                found.setdefault(key, work)
    return list(found.values())


@pytest.mark.parametrize("work", different_commands(), ids=lambda work: work.name)
def test_the_command_of_a_run_parses_to_its_settings(work, tmp_path):
    parsed = parse(shlex.split(shlex.join(work.command(tmp_path))))
    if isinstance(work, Training):
        assert parsed.config == resolve(work)
        assert parsed.out == work.folder(tmp_path)
        return
    assert parsed.run_folder == work.training.folder(tmp_path)
    assert (parsed.out, parsed.json) == (work.file(tmp_path), True)
    assert (parsed.seed, parsed.split, parsed.episodes) == (30, "evaluation", work.episodes)
    assert (parsed.curve, parsed.truth, parsed.training) == (work.curve, work.truth, True)
    for name, value in work.play:
        assert getattr(parsed, name) == value


def test_a_training_is_finished_when_its_last_weights_are_there(tmp_path):
    config = resolve(SMALL)
    assert not SMALL.finished(tmp_path)
    with RunFolder(SMALL.folder(tmp_path), config) as folder:
        folder.save_weights(config.steps - 1, {"weight": np.zeros(1)})
    assert not SMALL.finished(tmp_path)
    fake_training(SMALL, tmp_path)
    assert SMALL.finished(tmp_path)
    kept = SMALL.folder(tmp_path) / "weights" / f"step-{config.steps:012d}.safetensors"
    kept.unlink()
    assert not SMALL.finished(tmp_path)


def test_a_training_that_kept_no_weights_is_the_same_training(tmp_path):
    without = replace(SMALL, settings=tuple((SMALL_SETTINGS | {"keep_weights": False}).items()))
    assert not resolve(without).evaluation.keep_weights
    assert without.name == SMALL.name
    fake_training(without, tmp_path)
    assert SMALL.finished(tmp_path)


def test_a_run_with_other_settings_is_not_the_one_that_is_wanted(tmp_path):
    other = replace(SMALL, seed=34)
    fake_training(other, tmp_path)
    other.folder(tmp_path).rename(SMALL.folder(tmp_path))
    assert not SMALL.finished(tmp_path)
    assert not SMALL.recorded(tmp_path)


def test_an_evaluation_of_other_weights_is_made_again(tmp_path):
    fake_training(SMALL, tmp_path)
    evaluation = Evaluation(SMALL)
    fake_evaluation(evaluation, tmp_path)
    assert evaluation.finished(tmp_path)
    with RunFolder(SMALL.folder(tmp_path), resolve(SMALL)) as folder:
        folder.save_weights(resolve(SMALL).steps, {"weight": np.ones(3)})
    assert SMALL.finished(tmp_path)
    assert not evaluation.finished(tmp_path)


def test_progress_is_read_from_the_last_whole_record(tmp_path):
    assert SMALL.done(tmp_path) == 0
    SMALL.folder(tmp_path).mkdir(parents=True)
    records = [{"step": 0, "uncharged_steps": 200.0}, {"step": 300, "uncharged_steps": 1000.0}]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (SMALL.folder(tmp_path) / "metrics.jsonl").write_text(lines + '{"step": 40')
    assert SMALL.done(tmp_path) == 1300
    assert Training("leap", "debug", 33).total == 3000


def test_an_evaluation_is_named_by_all_that_decides_it(tmp_path):
    one = Evaluation(SMALL)
    others = [Evaluation(SMALL, (("ensemble", 8),)), Evaluation(SMALL, curve=5), Evaluation(SMALL, truth=True)]
    others += [Evaluation(SMALL, episodes=7), Evaluation(SMALL, seed=31)]
    assert len({each.name for each in (one, *others)}) == 6
    fake_evaluation(one, tmp_path)
    assert one.finished(tmp_path)
    assert not any(other.finished(tmp_path) for other in others)


def test_records_are_copied_before_the_checkpoint_that_needs_them(tmp_path):
    fake_training(SMALL, tmp_path)
    folder = SMALL.folder(tmp_path)
    (folder / "checkpoints" / "step-000000000400.safetensors").write_bytes(b"state")
    (folder / "checkpoints" / ".step.partial").write_bytes(b"torn")
    names = [path.relative_to(folder).as_posix() for path in SMALL.files(tmp_path)]
    assert names[-1] == "checkpoints/step-000000000400.safetensors"
    assert names[:3] == ["config.json", "evaluations.jsonl", "metrics.jsonl"]
    assert not any("partial" in name or "lock" in name for name in names)
