"""Tables, the environment itself and worker processes play alike, and resume exactly."""

from dataclasses import replace

import numpy as np
import pytest

from skipper.envs.grid.table_env import TableVectorEnv
from skipper.envs.grid.vector_env import GridVectorEnv
from skipper.envs.minigrid.family import minigrid_family

IDS = (
    "MiniGrid-LavaGapS5-v0",
    "MiniGrid-SimpleCrossingS9N1-v0",
    "MiniGrid-DoorKey-5x5-v0",
    "MiniGrid-Unlock-v0",
    "MiniGrid-MultiRoom-N2-S4-v0",
)


def same(one, two, steps: int, actions: int, seed: int) -> None:
    """Step both with the same actions and compare everything that they return."""
    rng = np.random.default_rng(seed)
    for first, second in zip(one.reset(seed=seed), two.reset(seed=seed), strict=True):
        if isinstance(first, dict):
            first, second = first["goal"], second["goal"]
        assert (first == second).all()
    for _ in range(steps):
        action = rng.integers(actions, size=one.num_envs)
        (*left, left_info), (*right, right_info) = one.step(action), two.step(action)
        for first, second in zip(left, right, strict=True):
            assert (first == second).all()
        assert (left_info["task"] == right_info["task"]).all()
        assert (left_info["goal"] == right_info["goal"]).all()
        ended = left[2] | left[3]
        if ended.any():
            assert (left_info["final_obs"][ended] == right_info["final_obs"][ended]).all()


@pytest.mark.parametrize("env_id", IDS)
def test_tables_equal_the_stock_environment_transition_for_transition(env_id):
    family = minigrid_family(env_id)
    world = replace(family.world("debug"), max_steps=50)
    for seed in (0, 1):
        tasks = family.training_tasks(world, 2, seed)
        table = family.vector_env(3, tasks, world)
        assert isinstance(table, TableVectorEnv)
        stock = GridVectorEnv(3, family.playing(world), family.facts, tasks, world)
        same(table, stock, 300, len(family.actions), seed)


def test_worker_processes_play_the_same():
    family = minigrid_family("MiniGrid-DoorKey-5x5-v0")
    world = replace(family.world("debug"), max_steps=20)
    here = family.vector_env(3, None, world)
    there = family.vector_env(3, None, replace(world, workers=2))
    assert isinstance(there, GridVectorEnv)
    try:
        same(here, there, 60, len(family.actions), 0)
    finally:
        there.close()


@pytest.mark.parametrize("env_id", ["MiniGrid-LavaGapS5-v0", "MiniGrid-Dynamic-Obstacles-5x5-v0"])
@pytest.mark.parametrize("fixed", [True, False])
def test_a_saved_state_continues_exactly(env_id, fixed):
    family = minigrid_family(env_id)
    world = replace(family.world("debug"), max_steps=15)
    tasks = family.training_tasks(world, 2, 0) if fixed else None
    envs, again = (family.vector_env(4, tasks, world) for _ in range(2))
    rng = np.random.default_rng(0)
    envs.reset(seed=5)
    for _ in range(40):
        envs.step(rng.integers(3, size=4))
    state = envs.state_dict()
    again.load_state_dict(state)
    for _ in range(40):
        action = rng.integers(3, size=4)
        for first, second in zip(envs.step(action)[:4], again.step(action)[:4], strict=True):
            assert (first == second).all()


def test_own_reward_shrinks_with_time_and_one_does_not():
    family = minigrid_family("MiniGrid-Empty-5x5-v0")
    for reward, expected in (("one", 1.0), ("own", 1 - 0.9 * 5 / 100)):
        world = replace(family.world("debug"), reward=reward)
        envs = family.vector_env(1, None, world)
        envs.reset(seed=0)
        for move in (2, 2, 1, 2):
            envs.step(np.array([move]))
        _, paid, terminated, _, _ = envs.step(np.array([2]))
        assert paid[0] == pytest.approx(expected)
        assert family.success(paid, terminated).all()
    assert "this process" in family.how_stepped(world, family.training_evaluation(world, None, 1, 0))


def test_random_effects_of_a_fixed_task_do_not_repeat():
    family = minigrid_family("MiniGrid-Dynamic-Obstacles-5x5-v0")
    world = family.world("debug")
    assert world.stochastic
    assert not world.deterministic
    envs = family.vector_env(1, family.training_tasks(world, 1, 0), world)
    envs.reset(seed=0)
    seen = set()
    for _ in range(20):
        observation, *_, info = envs.step(np.array([0]))
        seen.add(info.get("final_obs", observation).tobytes())
    assert len(seen) > 4


def test_splits_share_no_layout():
    for env_id in ("MiniGrid-LavaGapS7-v0", "MiniGrid-SimpleCrossingS9N2-v0"):
        family = minigrid_family(env_id)
        world, layouts = family.world("debug"), family.facts.layouts
        sets = {
            "training": family.training_tasks(world, 5, 0),
            "evaluation": family.evaluation_tasks(world, "unseen", 12, 0),
            "tuning": family.evaluation_tasks(world, "unseen", 12, 0, "tuning"),
            "stream": family.training_evaluation(world, None, 12, 0),
        }
        content = {
            name: {layouts.content(family.env.reset(int(seed))) for seed in tasks.seeds} for name, tasks in sets.items()
        }
        for one, two in (("training", "evaluation"), ("training", "tuning"), ("evaluation", "tuning")):
            assert not content[one] & content[two]
        assert not content["stream"] & (content["evaluation"] | content["tuning"])
    with pytest.raises(ValueError, match="wanted 50 different training tasks, but the environment gave only 11"):
        minigrid_family("MiniGrid-LavaGapS7-v0").training_tasks(world, 50, 0)


def test_few_layouts_are_admitted():
    caveats = {
        name: minigrid_family(f"MiniGrid-{name}-v0").caveat() for name in ("Empty-5x5", "LavaGapS7", "FourRooms")
    }
    assert "unseen ones are the same" in caveats["Empty-5x5"]
    counts = "2 for evaluation, 2 for tuning, 11 for training"
    assert caveats["LavaGapS7"] == f"only 15 different layouts: {counts}"
    assert caveats["FourRooms"] == ""
