import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import skipper  # noqa: F401  registers the environments
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.env import LavaWorldEnv
from skipper.envs.lava.layout import AGENT, GOAL
from skipper.envs.lava.tasks import TaskStream, evaluation_tasks, tasks_from_text, training_tasks

OURS = sorted(name for name in gym.registry if name.startswith("skipper/"))


def test_the_lava_world_is_registered():
    assert "skipper/LavaWorld-v0" in OURS


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        *((name, {}) for name in OURS),  # the world of a benchmark is fixed
        ("skipper/LavaWorld-v0", {"width": 5, "height": 9, "slip": 0.3}),
        ("skipper/LavaWorld-v0", {"dynamics": "walls"}),
    ],
)
def test_gymnasium_checker_is_satisfied(name, fields):
    check_env(gym.make(name, render_mode="rgb_array", **fields).unwrapped)


def walk(env: gym.Env, actions: str) -> list[tuple[float, bool, bool]]:
    letters = "ESWN"
    return [tuple(env.step(letters.index(letter))[1:4]) for letter in actions]


def fixed(text: str, **fields) -> LavaWorldEnv:
    env = LavaWorldEnv(tasks=tasks_from_text(text, world=LavaConfig(start="fixed", **fields)))
    env.reset(seed=0)
    return env


DRAWING = "A#.\n..G\n..."


def test_the_goal_pays_one_and_terminates():
    assert walk(fixed(DRAWING), "SEE") == [(0, False, False), (0, False, False), (1, True, False)]


def test_lava_kills_and_walls_block():
    assert walk(fixed(DRAWING), "E") == [(0, True, False)]
    assert walk(fixed(DRAWING, dynamics="walls"), "ESEE")[-1] == (1, True, False)


def test_moves_off_the_grid_stay_and_cost_a_step():
    assert walk(fixed(DRAWING, max_steps=2), "NW") == [(0, False, False), (0, False, True)]


def test_the_goal_on_the_last_step_is_no_truncation():
    assert walk(fixed(DRAWING, max_steps=3), "SEE")[-1] == (1, True, False)


def test_a_slip_replaces_the_action_with_a_random_one():
    text = "." * 9 + "\n" + ("." * 9 + "\n") * 3 + "....A....\n" + ("." * 9 + "\n") * 3 + "........G"
    env = LavaWorldEnv(tasks=tasks_from_text(text, world=LavaConfig(start="fixed", slip=0.4)))
    moves = {"east": 0, "other": 0}
    env.reset(seed=1)
    for _ in range(4000):
        image = env.step(0)[0]
        moves["east" if image[5, 4, 0] == AGENT else "other"] += 1
        env.reset()
    assert moves["east"] / 4000 == pytest.approx(0.7, abs=0.03)  # 0.6 + 0.4 / 4


def test_info_carries_the_goal_observation():
    env = LavaWorldEnv()
    for seed in range(5):
        observation, info = env.reset(seed=seed)
        goal = np.argwhere(observation[..., 0] == GOAL)[0]
        expected = observation.copy()
        expected[tuple(np.argwhere(observation[..., 0] == AGENT)[0])] = (1, 0)
        expected[tuple(goal)] = (AGENT, 1)
        assert (info["goal"] == expected).all()
        assert (env.step(0)[4]["goal"] == info["goal"]).all()


def test_uniform_starts_cover_every_reachable_non_terminal_cell():
    tasks = training_tasks(LavaConfig(start="uniform"), 1, seed=0)
    env = LavaWorldEnv(tasks=tasks)
    env.reset(seed=0)
    seen = np.array([(env.reset()[0].reshape(-1, 2)[:, 0] == AGENT).argmax() for _ in range(3000)])
    possible = tasks.table.starts[0, : tasks.table.start_count[0]]
    counts = np.bincount(seen, minlength=144)
    assert set(seen) == set(possible.tolist())
    assert counts[possible].max() < 3 * counts[possible].mean()


def test_fixed_starts_are_the_tasks_own():
    tasks = training_tasks(LavaConfig(start="fixed"), 3, seed=0)
    env = LavaWorldEnv(tasks=tasks)
    for seed in range(10):
        observation, info = env.reset(seed=seed)
        assert (observation.reshape(-1, 2)[:, 0] == AGENT).argmax() == tasks.table.start[info["task"]]


def test_every_task_of_a_set_comes_up():
    env = LavaWorldEnv(tasks=training_tasks(LavaConfig(), 4, seed=0))
    env.reset(seed=0)
    counts = np.bincount([env.reset()[1]["task"] for _ in range(400)], minlength=4)
    assert counts.min() > 60


def test_a_stream_gives_a_new_task_every_episode():
    env = LavaWorldEnv()
    env.reset(seed=0)
    assert len({env.reset()[1]["goal"].tobytes() for _ in range(50)}) == 50


def test_a_seed_decides_everything_that_follows():
    trails = []
    for _ in range(2):
        env = LavaWorldEnv(slip=0.5)
        observation, _ = env.reset(seed=5)
        trail = [observation]
        for step in range(200):
            observation, _, terminated, truncated, _ = env.step(step % 4)
            trail.append(observation if not (terminated or truncated) else env.reset()[0])
        trails.append(np.array(trail))
    assert (trails[0] == trails[1]).all()
    assert not (env.reset(seed=6)[0] == trails[0][0]).all()


def test_renderings():
    assert fixed(DRAWING).render() is None
    env = LavaWorldEnv("ansi", tasks=tasks_from_text(DRAWING, world=LavaConfig(start="fixed")))
    assert env.render() is None
    env.reset(seed=0)
    assert env.render() == DRAWING
    env = LavaWorldEnv("rgb_array", width=5, height=3)
    env.reset(seed=0)
    assert env.render().shape == (96, 160, 3)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="available: rgb_array, ansi"):
        LavaWorldEnv("human")
    with pytest.raises(ValueError, match="tasks have their own world; leave out: slip"):
        LavaWorldEnv(tasks=training_tasks(LavaConfig(), 1, 0), slip=0.1)
    with pytest.raises(TypeError, match="colour"):
        LavaWorldEnv(colour="red")
    with pytest.raises(gym.error.ResetNeeded):
        LavaWorldEnv().step(0)
    with pytest.raises(ValueError, match="from 0 to 3, got 4"):
        fixed(DRAWING).step(4)


def test_an_episode_that_has_ended_cannot_go_on():
    env = fixed(DRAWING)
    walk(env, "SEE")
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)


def test_without_a_seed_environments_differ():
    goals = {LavaWorldEnv().reset()[1]["goal"].tobytes() for _ in range(3)}
    assert len(goals) == 3


def test_a_stream_keeps_to_its_split():
    world = LavaConfig(4, 3, difficulty=0.35)
    tuning = {
        scenery.tobytes() for scenery in evaluation_tasks(world, 0.35, 3000, 0, spread=0, split="tuning").table.scenery
    }
    env = LavaWorldEnv(tasks=TaskStream(world, "tuning"))
    env.reset(seed=0)
    for _ in range(100):
        env.reset()
        assert env._table.scenery[0].tobytes() in tuning


@pytest.mark.parametrize("action", [1.0, "1", None, -1])
def test_what_is_no_action_is_refused(action):
    with pytest.raises(ValueError, match="wanted an action"):
        fixed(DRAWING).step(action)
