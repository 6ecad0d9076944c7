"""Damaged, swapped and malicious files in a run folder: each must be refused in one line, and none executed."""

import pickle
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import skipper
from skipper.training.run import train
from skipper.training.settings import configure

SHORT = replace(configure("debug", "modelfree"), steps=400, checkpoint_every=400)
NAMES = ("config.json", "weights.safetensors", "checkpoints/step-000000000400.safetensors")
KINDS = ("flip", "flip", "flip", "truncate", "swap", "misplace", "pickle", "insert", "garbage", "length", "nest")


class Trap:
    """Unpickling this creates the file ``path``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def make_runs(folder: Path) -> tuple[Path, Path]:
    """Two finished runs that differ in their seeds."""
    for seed in (0, 1):
        train(replace(SHORT, seed=seed), folder / str(seed))
    return folder / "0", folder / "1"


def attack(runs: tuple[Path, Path], folder: Path, files: int, seed: int) -> Iterator[str | None]:
    """Offer hostile files one at a time; yields what went wrong with each, or None where it was refused in one line."""
    good, other = runs
    rng, run, trap = random.Random(seed), folder / "run", folder / "executed"
    for number in range(files):
        name = NAMES[number % len(NAMES)]
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(good, run)
        kind = damage(run, name, rng, other, trap)
        fault = fault_of(run, name)
        if trap.exists():
            trap.unlink()
            fault = "executed"
        yield fault and f"{fault} ({kind} in {name}, file {number} of seed {seed})"


def fault_of(run: Path, name: str) -> str | None:
    """What goes wrong when a run folder with a hostile file is used, or None."""
    use = partial(train, SHORT) if name.startswith("checkpoints") else skipper.load
    try:
        use(run)
    except ValueError as error:  # which the command prints
        message = str(error)
        return None if "run" in message and "\n" not in message else f"unclear message {message!r}"
    except Exception as error:
        return f"traceback of {type(error).__name__}: {error}"
    return "accepted"


def damage(run: Path, name: str, rng: random.Random, other: Path, trap: Path) -> str:
    """Replace a file of a run by a hostile one; returns which kind."""
    path, kind = run / name, rng.choice(KINDS)
    good = path.read_bytes()
    if kind == "flip":
        path.write_bytes(flipped(good, rng))
    elif kind == "truncate":
        path.write_bytes(good[: rng.randrange(len(good))])
    elif kind == "swap":
        path.write_bytes((other / name).read_bytes())
    elif kind == "misplace":
        path.write_bytes((run / rng.choice([each for each in NAMES if each != name])).read_bytes())
    elif kind == "pickle":
        path.write_bytes(pickle.dumps(Trap(trap)))
    elif kind == "insert":
        place = rng.randrange(len(good))
        path.write_bytes(good[:place] + rng.randbytes(rng.randint(1, 9)) + good[place:])
    elif kind == "garbage":
        path.write_bytes(rng.randbytes(len(good)))
    elif kind == "length":  # of the header of a safetensors file
        path.write_bytes(rng.randrange(2**64).to_bytes(8, "little") + good[8:])
    else:
        header = b"[" * rng.randint(1_000, 200_000)
        path.write_bytes(header if path.suffix == ".json" else len(header).to_bytes(8, "little") + header)
    return kind


def flipped(good: bytes, rng: random.Random) -> bytes:
    """With one to three bits changed."""
    damaged = bytearray(good)
    for _ in range(rng.randint(1, 3)):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    if damaged == good:  # the same bit twice
        damaged[0] ^= 1
    return bytes(damaged)
