import random

from skipper.benchmarks.plain import draw_plain
from skipper.benchmarks.world import bench_world
from skipper.config import WorldConfig


def test_every_rate_and_its_ratio_is_reported():
    rates = bench_world(WorldConfig(5, 5), seconds=0.01)
    for name in ("vector_steps", "single_steps", "layouts", "oracle_tasks"):
        assert rates[f"{name}_per_s"] > 0
        assert rates[f"{name}_ratio"] == rates[f"{name}_per_s"] / rates[f"{name}_plain_per_s"]


def test_plain_layouts_keep_the_promises_of_the_fast_ones():
    rng = random.Random(0)
    for _ in range(50):
        plain, start = draw_plain(12, 12, 0.4, rng)
        assert len(plain.obstacles) == 48
        assert plain.distances(start)[plain.goal] < float("inf")
