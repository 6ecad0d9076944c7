"""What MiniGrid's environments show here is what they are, step by step."""

import gymnasium as gym
import minigrid  # noqa: F401
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from skipper.envs.grid.env import GridEnv
from skipper.envs.minigrid.family import minigrid_family
from skipper.envs.minigrid.full_grid import ANY_DIRECTION, FullGrid
from skipper.envs.minigrid.things import look, make_stock

IDS = (
    "MiniGrid-Empty-Random-5x5-v0",
    "MiniGrid-LavaGapS5-v0",
    "MiniGrid-SimpleCrossingS9N1-v0",
    "MiniGrid-DoorKey-5x5-v0",
    "MiniGrid-Unlock-v0",
    "MiniGrid-Dynamic-Obstacles-5x5-v0",
)


def shown(grid: FullGrid, things, observation):
    """MiniGrid's own encoding of an observation, and the agent's position, direction and load."""
    codes = np.array(things.codes)[observation[..., 0]]  # (W, H, 3)
    x, y = np.argwhere(observation[..., -1])[0]
    carried = int(observation[x, y, 1]) if observation.shape[-1] == 3 else 0
    return codes, (x, y), int(observation[x, y, -1]), carried


@pytest.mark.parametrize("env_id", IDS)
def test_a_twin_rollout_shows_what_the_stock_environment_holds(env_id):
    stock = gym.make(env_id, disable_env_checker=True).unwrapped
    things = look(make_stock(env_id))
    grid, rng = FullGrid(env_id, things, stock.max_steps), np.random.default_rng(0)
    for seed in range(3):
        stock.reset(seed=seed)
        observation, over = grid.reset(seed), False
        for _ in range(80):
            codes, position, agent, carried = shown(grid, things, observation)
            assert position == tuple(stock.agent_pos)
            if agent == ANY_DIRECTION:
                assert stock.grid.get(*position).type in ("goal", "lava")
            else:
                assert agent == 1 + stock.agent_dir
                assert (codes == stock.grid.encode()).all()
                assert bool(carried) == (stock.carrying is not None)
            if over:
                break
            action = int(rng.integers(stock.action_space.n))
            _, reward, terminated, truncated, _ = stock.step(action)
            observation, own, ended, cut = grid.step(action)
            assert (reward, terminated, truncated) == (own, ended, cut)
            over = terminated or truncated


def test_all_states_on_the_goal_look_alike():
    env_id = "MiniGrid-Empty-5x5-v0"
    grid = FullGrid(env_id, look(make_stock(env_id)), 100)
    ends = []
    for moves in ([2, 2, 1, 2, 2], [1, 2, 2, 0, 2, 2]):  # from above, and from the left
        grid.reset(0)
        *_, last = [grid.step(move) for move in moves]
        assert last.terminated
        ends.append(last.observation)
    assert (ends[0] == ends[1]).all()
    assert (ends[0] == grid.goal()).all()


def test_saved_states_are_taken_up_again():
    env_id = "MiniGrid-DoorKey-5x5-v0"
    grid, rng = FullGrid(env_id, look(make_stock(env_id)), 100), np.random.default_rng(1)
    grid.reset(3)
    saved, after = [], []
    actions = rng.integers(6, size=60).tolist()
    for action in actions:
        saved.append(grid.save())
        after.append(grid.step(action).observation)
    for index in rng.permutation(60).tolist():
        grid.restore(saved[index])
        assert (grid.step(actions[index]).observation == after[index]).all()


@pytest.mark.parametrize("env_id", IDS)
def test_gymnasiums_checker_accepts_every_adapter(env_id):
    family = minigrid_family(env_id)
    check_env(GridEnv(family, family.world("debug")), skip_render_check=True)


def test_missions_that_the_grid_does_not_show_are_refused():
    with pytest.raises(ValueError, match="not fully observable: the mission changes"):
        minigrid_family("MiniGrid-Fetch-5x5-N2-v0").spec(None)
    with pytest.raises(ValueError, match="a box hides a key"):
        minigrid_family("MiniGrid-ObstructedMaze-1Dlh-v0").spec(None)
    with pytest.raises(ValueError, match=r"and \d+ more; did you mean 'MiniGrid-FourRooms-v0'"):
        minigrid_family("MiniGrid-FourRoom-v0")
