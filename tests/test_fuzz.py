"""Five hundred damaged, swapped and malicious files: each refused in one line, none believed, none executed."""

import pickle
import random
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import skipper
from skipper.presets import DEBUG
from skipper.training.run import train

FILES = 500
SHORT = replace(DEBUG, steps=400, checkpoint_every=400)


class Trap:
    """Unpickling this would leave a trace."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> tuple[Path, Path]:
    base = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        train(replace(SHORT, seed=seed), base / str(seed))
    return base / "0", base / "1"


def damage(path: Path, rng: random.Random, other: Path, trap: Path) -> str:
    good = path.read_bytes()
    kind = rng.choice(["flip", "flip", "flip", "truncate", "swap", "pickle", "insert", "garbage"])
    if kind == "flip":
        damaged = bytearray(good)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        if bytes(damaged) == good:
            damaged[0] ^= 1
        path.write_bytes(damaged)
    elif kind == "truncate":
        path.write_bytes(good[: rng.randrange(len(good))])
    elif kind == "swap":
        path.write_bytes(other.read_bytes())
    elif kind == "pickle":
        path.write_bytes(pickle.dumps(Trap(trap)))
    elif kind == "insert":
        place = rng.randrange(len(good))
        path.write_bytes(good[:place] + rng.randbytes(rng.randint(1, 9)) + good[place:])
    else:
        path.write_bytes(rng.randbytes(len(good)))
    return kind


def test_no_damaged_file_is_believed(runs, tmp_path):
    good, other = runs
    rng = random.Random(0)
    trap = tmp_path / "executed"
    names = ["config.json", "weights.safetensors", "checkpoints/step-000000000400.safetensors"]
    for number in range(FILES):
        name = names[number % 3]
        run = tmp_path / "run"
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(good, run)
        kind = damage(run / name, rng, other / name, trap)
        use = partial(train, SHORT) if name.startswith("checkpoints") else skipper.load
        with pytest.raises(ValueError, match="run") as refused:
            use(run)
        message = str(refused.value)
        assert "\n" not in message, (kind, name, message)
        assert not trap.exists(), (kind, name)


def test_the_undamaged_run_is_believed(runs):
    skipper.load(runs[0])
    assert train(SHORT, runs[0])
