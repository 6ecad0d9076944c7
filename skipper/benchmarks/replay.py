"""Speed of the replay samplers on a full store, and the memory of a sample."""

from time import perf_counter
from typing import Any

import numpy as np

from skipper.replay.all_pairs import AllPairsSampler
from skipper.replay.episodes import Episode
from skipper.replay.prioritized import PrioritizedSampler
from skipper.replay.relabel import HindsightConfig
from skipper.replay.store import EpisodeStore
from skipper.runtime.machine import describe_machine

STEPS = 32  # of each episode
SHAPE = (12, 12, 2)


def bench_replay(samples: int, batch: int) -> dict[str, Any]:
    """Store episodes with ``samples`` hindsight samples, then draw and update batches of them."""
    rng = np.random.default_rng(0)
    # Relabelling drops duplicates, so a transition has slightly fewer than its four targets.
    config = HindsightConfig(capacity=samples // 3 + STEPS + 1)
    store = EpisodeStore(config.capacity, SHAPE)
    prioritized, all_pairs = PrioritizedSampler(store, config, rng), AllPairsSampler(store, config, 0.99)
    pool = [
        Episode(rng.integers(11, size=(STEPS + 1, *SHAPE), dtype=np.uint8), np.zeros(STEPS), np.zeros(STEPS), True)
        for _ in range(64)
    ]
    store.add(pool[0])  # compiles
    begin, before = perf_counter(), len(prioritized)
    while len(prioritized) < samples:
        store.add(pool[len(store) % len(pool)])
    added, elapsed = len(prioritized) - before, perf_counter() - begin
    sample_times, update_times, pair_times = [], [], []
    for _ in range(500):
        begin = perf_counter()
        drawn = prioritized.sample(batch, 0.4, rng)
        middle = perf_counter()
        prioritized.update_priorities(drawn.leaf, rng.random(batch))
        after = perf_counter()
        all_pairs.sample(rng)
        sample_times.append(middle - begin)
        update_times.append(after - middle)
        pair_times.append(perf_counter() - after)
    return {
        "machine": describe_machine(),
        "samples": len(prioritized),
        "batch": batch,
        "add_samples_per_s": added / elapsed,
        "sample_ms": float(np.median(sample_times)) * 1e3,
        "update_ms": float(np.median(update_times)) * 1e3,
        "sample_pairs_ms": float(np.median(pair_times)) * 1e3,
        "bytes_per_sample": prioritized.bytes_per_sample,
        "bytes_of_the_episode_store_per_sample": config.capacity * (int(np.prod(SHAPE)) + 11) / len(prioritized),
    }
