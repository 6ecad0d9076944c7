"""A run that is killed again and again ends as if nothing had happened."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).parent / "skipper"
# Checkpoints so often that many of the kills fall into the writing of one.
OPTIONS = ["train", "--preset", "debug", "--steps", "3000", "--checkpoint-every", "20", "--evaluate-every", "300"]
MODELFREE = ("--agent", "modelfree")
KILLS = 20
DOUBTING = [
    *("--agent", "skipper-regen", "--generator-width", "4", "--checkpoints", "4", "--match-observations"),
    *("--regenerate", "step", "--revisit-penalty", "0.5", "--ema-decay", "0.9"),
]
# All that learns fast, at once.
FAST = [
    *("--agent", "skipper-regen", "--generator-width", "4", "--flat-description", "--learned-goal", "--scaled-start"),
    *("--all-pairs", "--other-episodes", "0.2", "--hindsight-bound", "--delusion-scale", "0.25"),
    *("--practice", "--act-with-target-network", "--match-observations", "--symmetries", "--ema-decay", "0.9"),
    *("--updater-process", "--threads", "2"),
]


def start(out: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [PROGRAM, *OPTIONS, *options, "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)


def wait_for_all(process: subprocess.Popen[bytes]) -> None:
    """Wait until nothing that the process started is left: a process that learns for it must notice its end."""
    process.wait()
    for _ in range(1_000):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    raise AssertionError("something outlived the run that started it")


def run(*options: str | Path, **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *OPTIONS, *options], capture_output=True, text=True, check=False, **more)


def newest(out: Path) -> str:
    return max((path.name for path in out.glob("checkpoints/step-*")), default="")


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ([*MODELFREE], KILLS),
        (["--agent", "skipper-once", "--generator-width", "4", "--steps", "1600"], 4),
        ([*DOUBTING, "--steps", "1200"], 3),
        ([*FAST, "--steps", "1600"], 4),
    ],
    ids=["modelfree", "skipper", "skipper, doubting", "skipper, fast"],
)
def test_kills_at_random_moments_change_nothing(options, wanted, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert start(whole, *options).wait() == 0
    moments = random.Random(0)
    kills = 0
    while kills < wanted:
        before = newest(parts)
        process = start(parts, *options)
        # Let it come back to life and make some progress, then strike at any moment.
        while process.poll() is None and newest(parts) == before:
            time.sleep(0.002)
        time.sleep(moments.uniform(0.0, 0.06))
        process.send_signal(signal.SIGKILL)
        wait_for_all(process)
        assert process.returncode == -signal.SIGKILL, f"ended by itself after {kills} kills: the run is too short"
        kills += 1
    assert start(parts, *options).wait() == 0
    for name in ("weights.safetensors", "evaluations.jsonl", "config.json"):
        assert (whole / name).read_bytes() == (parts / name).read_bytes(), name


def test_a_second_process_and_another_configuration_are_refused_in_one_line(tmp_path):
    first = start(tmp_path, *MODELFREE)
    while not newest(tmp_path):
        assert first.poll() is None
        time.sleep(0.01)
    second = run(*MODELFREE, "--out", tmp_path)
    first.send_signal(signal.SIGTERM)
    assert first.wait() == 0
    third = run(*MODELFREE, "--seed", "7", "--out", tmp_path)
    for refused, wanted in ((second, "in use by another process"), (third, "seed: 0 -> 7")):
        assert refused.returncode == 1
        assert wanted in refused.stderr
        assert refused.stderr.count("\n") == 1


def test_a_folder_that_cannot_be_written_is_one_line():
    refused = run(*MODELFREE, "--out", "/proc/nowhere")
    assert refused.returncode == 1
    assert refused.stderr.startswith("skipper: error:")
    assert refused.stderr.count("\n") == 1


def test_a_full_disk_ends_the_run_with_one_line_and_spares_the_last_checkpoint(tmp_path):
    """Files may not grow beyond a limit that the first checkpoints keep and later ones do not."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (230_000, 230_000))

    ended = run(*MODELFREE, "--out", tmp_path, preexec_fn=limit)
    assert ended.returncode == 1
    assert ended.stderr.startswith("skipper: error:")
    assert ended.stderr.count("\n") == 1
    assert newest(tmp_path)
    assert not list(tmp_path.glob("checkpoints/.*"))
    assert run(*MODELFREE, "--out", tmp_path).returncode == 0
