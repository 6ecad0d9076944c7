import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import skipper  # noqa: F401  registers the environments
from skipper.agents.policy_function import PolicyFunction
from skipper.envs.benchmarks import BENCHMARKS, find_benchmark
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.tasks import training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.types import TimeStep

FIXED = [name for name, benchmark in BENCHMARKS.items() if benchmark.tasks]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_gymnasium_knows_every_benchmark_in_every_way(name):
    env = gym.make(name)
    check_env(env.unwrapped, skip_render_check=True)
    for mode in ("vector_entry_point", "sync"):
        envs = gym.make_vec(name, num_envs=3, vectorization_mode=mode)
        observation, _ = envs.reset(seed=0)
        assert observation.shape == (3, 12, 12, 2)
        assert isinstance(envs.unwrapped, LavaVectorEnv) == (mode == "vector_entry_point")
    assert gym.make(name, render_mode="rgb_array").spec.id == name


@pytest.mark.parametrize("name", FIXED)
def test_a_benchmark_trains_on_the_tasks_of_a_run_with_the_same_seed(name):
    wanted = training_tasks(LavaConfig(), BENCHMARKS[name].tasks, seed=21).table.scenery
    single = gym.make(name, task_seed=21).unwrapped
    envs = gym.make_vec(name, num_envs=2, task_seed=21)
    for tasks in (single.tasks, envs.tasks, find_benchmark(name).training_tasks(21)):
        assert (tasks.table.scenery == wanted).all()
    assert len(wanted) == int(name.split("-")[1])
    assert not (gym.make(name, task_seed=22).unwrapped.tasks.table.scenery == wanted).all()


def test_test_sets_are_those_of_the_evaluate_command():
    sets = find_benchmark("skipper/LavaWorld-50-v0").test_tasks(3, seed=20)
    assert list(sets) == ["0.25", "0.35", "0.45", "0.55"]
    family, world = find_benchmark("skipper/LavaWorld-50-v0").family, LavaConfig()
    for name, tasks in sets.items():
        wanted = family.evaluation_tasks(world, name, 3, 20)
        assert (np.asarray(tasks.table.scenery) == wanted.table.scenery).all()


def test_a_stream_has_no_fixed_tasks():
    assert find_benchmark("skipper/LavaWorld-v0").training_tasks(0) is None


def test_an_unknown_benchmark_is_refused():
    with pytest.raises(ValueError, match=r"unknown benchmark 'skipper/LavaWorld-51-v0'.*did you mean"):
        find_benchmark("skipper/LavaWorld-51-v0")


def test_the_code_of_the_page_runs_and_gives_legal_actions():
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block.replace("n_steps=128", "n_steps=4, n_epochs=1").replace("100_000", "64"), names)
    observation, _ = names["env"].reset(seed=0)
    agent = PolicyFunction(names["act"], "page", 4)
    assert agent.act(TimeStep(observation[None], observation[None], np.ones(1, bool))).action.tolist() == [0]
    assert names["model"].num_timesteps == 64
