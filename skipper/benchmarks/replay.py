"""How fast the replay buffer is when it is full, and how much memory a sample takes."""

from time import perf_counter
from typing import Any

import numpy as np

from skipper.benchmarks.machine import describe_machine
from skipper.config import HindsightConfig
from skipper.replay.episodes import Episode
from skipper.replay.store import Replay

STEPS = 32  # of each episode
SHAPE = (12, 12, 2)


def bench_replay(samples: int, batch: int) -> dict[str, Any]:
    """Fill a buffer with ``samples`` hindsight samples, then draw and update batches of them."""
    rng = np.random.default_rng(0)
    # Relabelling drops duplicates, so that a transition gets a little less than its four targets.
    config = HindsightConfig(capacity=samples // 3 + STEPS + 1)
    replay = Replay(config, SHAPE)
    pool = [
        Episode(rng.integers(11, size=(STEPS + 1, *SHAPE), dtype=np.uint8), np.zeros(STEPS), np.zeros(STEPS), True)
        for _ in range(64)
    ]
    replay.add(pool[0], rng)  # compiles
    begin, before = perf_counter(), len(replay)
    while len(replay) < samples:
        replay.add(pool[replay.episodes % len(pool)], rng)
    added, elapsed = len(replay) - before, perf_counter() - begin
    sample_times, update_times, pair_times = [], [], []
    for _ in range(500):
        begin = perf_counter()
        drawn = replay.sample(batch, 0.4, rng)
        middle = perf_counter()
        replay.update(drawn.places, rng.random(batch))
        after = perf_counter()
        replay.sample_pairs(rng, 0.99)
        sample_times.append(middle - begin)
        update_times.append(after - middle)
        pair_times.append(perf_counter() - after)
    return {
        "machine": describe_machine(),
        "samples": len(replay),
        "batch": batch,
        "add_samples_per_s": added / elapsed,
        "sample_ms": float(np.median(sample_times)) * 1e3,
        "update_ms": float(np.median(update_times)) * 1e3,
        "sample_pairs_ms": float(np.median(pair_times)) * 1e3,
        "bytes_per_sample": replay.bytes_per_sample,
        "bytes_of_the_episode_store_per_sample": config.capacity * (int(np.prod(SHAPE)) + 11) / len(replay),
    }
