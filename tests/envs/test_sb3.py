import importlib
import sys

import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor

from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.tasks import training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.envs.sb3 import SB3VecEnv, make_sb3_env, one_hot

TASKS = training_tasks(LavaConfig(6, 5, max_steps=9), 3, seed=0)


def test_planes_say_which_value_every_cell_has():
    observation = np.random.default_rng(0).integers(0, (4, 3), size=(5, 6, 2, 2)).astype(np.uint8)
    planes = one_hot(observation, (4, 3))
    assert planes.shape == (5, 7, 6, 2)
    assert planes.dtype == np.float32
    for batch, x, y in np.ndindex(5, 6, 2):
        wanted = np.zeros(7)
        wanted[observation[batch, x, y, 0]] = 1
        wanted[4 + observation[batch, x, y, 1]] = 1
        assert (planes[batch, :, x, y] == wanted).all()


@pytest.mark.parametrize("vocabulary", [None, (11, 6)])
def test_the_same_transitions_as_the_vector_environment(vocabulary):
    count, rng = 8, np.random.default_rng(0)
    envs, twin = SB3VecEnv(LavaVectorEnv(count, tasks=TASKS), vocabulary), LavaVectorEnv(count, tasks=TASKS)
    encode = (lambda grid: grid) if vocabulary is None else (lambda grid: one_hot(grid, vocabulary))
    envs.seed(7)
    first = envs.reset()
    assert (first == encode(twin.reset(seed=7)[0])).all()
    assert envs.observation_space.contains(first[0])
    returns, lengths, ends = np.zeros(count), np.zeros(count, int), {"success": 0, "truncated": 0, "death": 0}
    for _ in range(200):
        actions = rng.integers(4, size=count)
        observation, reward, done, infos = envs.step(actions)
        after, reward_twin, terminated, truncated, info = twin.step(actions)
        assert (observation == encode(after)).all()
        assert (reward == reward_twin).all()
        assert (done == terminated | truncated).all()
        returns, lengths = returns + reward_twin, lengths + 1
        for row in range(count):
            if not done[row]:
                assert infos[row] == {}
                continue
            entry = infos[row]
            assert (entry["terminal_observation"] == encode(info["final_obs"])[row]).all()
            assert entry["TimeLimit.truncated"] == truncated[row]
            assert entry["is_success"] == (reward[row] == 1)
            assert (entry["episode"]["r"], entry["episode"]["l"]) == (returns[row], lengths[row])
            ends["truncated" if truncated[row] else "success" if reward[row] else "death"] += 1
        returns[done], lengths[done] = 0.0, 0
    assert min(ends.values()) > 0


def test_a_seed_decides_the_episodes():
    def observations(seed: int) -> np.ndarray:
        envs = make_sb3_env("skipper/LavaWorld-5-v0", 4)
        envs.seed(seed)
        first = envs.reset()
        return np.stack([first, *(envs.step(np.full(4, step % 4))[0] for step in range(30))])

    assert (observations(1) == observations(1)).all()
    assert not (observations(1) == observations(2)).all()


def test_ppo_trains_on_it_and_logs_its_success():
    model = PPO("MlpPolicy", VecMonitor(make_sb3_env("skipper/LavaWorld-5-v0", 4)), n_steps=16, n_epochs=1, seed=0)
    model.learn(128)
    assert model.num_timesteps == 128
    assert len(model.ep_info_buffer) == len(model.ep_success_buffer) > 0


def test_environments_in_lockstep_share_their_attributes():
    envs = make_sb3_env("skipper/LavaWorld-5-v0", 3)
    assert envs.get_attr("num_envs", [0, 2]) == [3, 3]
    assert envs.env_is_wrapped(object) == [False] * 3
    with pytest.raises(NotImplementedError, match="no attributes of their own"):
        envs.set_attr("tasks", None)
    with pytest.raises(NotImplementedError, match="no methods of their own"):
        envs.env_method("reset")
    envs.close()


def test_a_missing_library_is_named_in_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    monkeypatch.setitem(sys.modules, "stable_baselines3.common.vec_env", None)
    monkeypatch.delitem(sys.modules, "skipper.envs.sb3")
    with pytest.raises(ImportError, match=r"pip install 'skipper-rl\[sb3\]'"):
        importlib.import_module("skipper.envs.sb3")
