import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from skipper.benchmarks import update
from skipper.benchmarks.plain import draw_plain
from skipper.benchmarks.plan import bench_plan, trained, untrained
from skipper.benchmarks.replay import bench_replay
from skipper.benchmarks.sb3 import bench_sb3
from skipper.benchmarks.train import EPISODES, training_speed
from skipper.benchmarks.update import Operations, bench_update
from skipper.benchmarks.world import bench_world
from skipper.envs.lava.config import LavaConfig
from skipper.training.settings import configure

PRETRAINED = Path(__file__).parents[2] / "skipper" / "pretrained"

pytestmark = pytest.mark.usefixtures("short_benchmarks")


def test_every_rate_and_its_ratio_is_reported():
    rates = bench_world(LavaConfig(5, 5), seconds=0.01)
    for name in ("vector_steps", "single_steps", "layouts", "oracle_tasks"):
        assert rates[f"{name}_per_s"] > 0
        assert rates[f"{name}_ratio"] == rates[f"{name}_per_s"] / rates[f"{name}_plain_per_s"]


def test_plain_layouts_keep_the_promises_of_the_fast_ones():
    rng = random.Random(0)
    for _ in range(50):
        plain, start = draw_plain(12, 12, 0.4, rng)
        assert len(plain.obstacles) == 48
        assert plain.distances(start)[plain.goal] < float("inf")


@pytest.mark.parametrize("agent", ["skipper-regen", "modelfree", "leap", "director"])
def test_updates_are_measured_in_flop_and_as_a_share_of_the_networks_ceiling(agent):
    result = bench_update(configure("debug", agent), seconds=0.05)
    assert result["matmul_gflops"] > 1
    assert result["gflop"] > 0
    assert result["gflops"] == pytest.approx(result["gflop"] / result["ms"] * 1e3)
    assert result["share"] > 0


def test_the_share_is_the_median_of_single_shares(monkeypatch):
    durations = np.array([[4.0, 1.0], [8.0, 6.0], [2.0, 1.0]])  # of two updates, and of their products alone
    monkeypatch.setattr(update, "seconds_in_turns", lambda works, seconds: durations)
    layer, x = torch.nn.Linear(8, 4), torch.rand(16, 8)
    result = update.measure_update(lambda: layer(x).sum().backward(), every=2, seconds=1.0)
    assert result["share"] == 0.5  # of .25, .75 and .5
    assert result["ms"] == 2_000
    assert result["gflops"] == pytest.approx(result["gflop"] / 2.0)
    assert result["ceiling_gflops"] == pytest.approx(result["gflop"] / 0.5)


def test_the_operations_of_a_layer_are_counted():
    layer, x = torch.nn.Linear(8, 4), torch.rand(16, 8)
    with Operations() as operations:
        layer(x).sum().backward()
    assert operations.flop == 2 * 16 * 8 * 4 * 2  # forward, and the gradient of the weights


def test_planning_is_measured_alone_and_in_batches():
    result = bench_plan(untrained(configure("debug", "skipper-regen")), seconds=0.01)
    assert result["vertices"] == 32
    assert min(result["ms_batch1"], result["ms_batch64"]) > 0


def test_the_search_for_subgoals_is_measured():
    result = bench_plan(untrained(configure("debug", "leap")), seconds=0.01)
    assert (result["codes"], result["sequences"], result["plans_per_scene"]) == (64, 128, 1)
    assert min(result["ms_batch1_states"], result["ms_batch1"], result["ms_batch64"]) > 0


def test_a_trained_agents_plans_are_measured_too():
    result = bench_plan(trained(PRETRAINED / "skipper-regen-50"), seconds=0.01)
    assert result["preset"] == "fast"
    assert min(result["ms_batch1"], result["ms_batch64"]) > 0
    with pytest.raises(ValueError, match="modelfree-50 does not plan"):
        trained(PRETRAINED / "modelfree-50")


def test_replay_is_measured_when_it_is_full():
    result = bench_replay(samples=20_000, batch=8)
    assert 20_000 <= result["samples"] < 20_200
    assert result["bytes_per_sample"] <= 32
    assert min(result[name] for name in ("add_samples_per_s", "sample_ms", "update_ms", "sample_pairs_ms")) > 0


@pytest.mark.parametrize("agent", ["skipper-regen", "leap"])
def test_the_speed_of_training_and_evaluation(agent):
    speed = training_speed(replace(configure("debug", agent), threads=1), seconds=0.05)
    assert speed.steps > 0
    assert speed.episodes > 0


class SimulatedLoop:
    """A loop of 10 steps a second, in simulated time."""

    step, now = 0, 0.0
    learner = SimpleNamespace(evaluator=lambda rng: None)

    def advance(self):
        self.step += 1
        self.now += 0.1


def test_the_first_evaluation_which_compiles_is_not_measured(monkeypatch):
    loop, durations = SimulatedLoop(), iter([60.0])

    def play(*_):
        loop.now += next(durations, 0.5)

    monkeypatch.setattr("skipper.benchmarks.train.warm_loop", lambda config: loop)
    monkeypatch.setattr("skipper.benchmarks.train.play", play)
    monkeypatch.setattr("skipper.benchmarks.train.perf_counter", lambda: loop.now)
    speed = training_speed(configure("debug", "modelfree"), seconds=2.0)
    assert speed.steps == pytest.approx(10)
    assert speed.episodes == pytest.approx(EPISODES / 0.5)


def test_the_speed_of_another_librarys_agent_here_and_where_nothing_happens(monkeypatch):
    monkeypatch.setattr("skipper.benchmarks.sb3.ROLLOUT", 64)
    result = bench_sb3("skipper/LavaWorld-5-v0", num_envs=4, rounds=1, threads=1)
    assert result["ratio"] == result["environment_steps_per_s"] / result["do_nothing_steps_per_s"] > 0
    with pytest.raises(ValueError, match="environments divide 64; got 5"):
        bench_sb3("skipper/LavaWorld-5-v0", num_envs=5, rounds=1, threads=1)
