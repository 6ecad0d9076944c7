import gymnasium as gym
import numpy as np
import pytest

import skipper  # noqa: F401  registers the environments
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.env import LavaWorldEnv
from skipper.envs.lava.tasks import TaskStream, tasks_from_text, training_tasks
from skipper.envs.lava.vector_env import LavaVectorEnv

WORLDS = {
    "fixed tasks": training_tasks(LavaConfig(), 5, seed=0),
    "stream": TaskStream(LavaConfig(7, 5, difficulty=0.3)),
    "walls with slip": training_tasks(LavaConfig(dynamics="walls", slip=0.2), 3, seed=1),
    "stream with slip, own starts": TaskStream(LavaConfig(slip=0.1, start="fixed")),
}


@pytest.mark.parametrize("tasks", WORLDS.values(), ids=WORLDS)
def test_identical_with_the_single_environment(tasks):
    """10,000 steps and every reset between them, transition for transition."""
    count, steps, seed = 10, 1000, 11
    envs = LavaVectorEnv(count, tasks=tasks)
    twins = [LavaWorldEnv(tasks=tasks) for _ in range(count)]
    observation, info = envs.reset(seed=seed)
    begun = [twin.reset(seed=seed + index) for index, twin in enumerate(twins)]
    assert (observation == np.stack([begin[0] for begin in begun])).all()
    assert (info["goal"] == np.stack([begin[1]["goal"] for begin in begun])).all()
    ended = {"terminated": 0, "truncated": 0}
    rng = np.random.default_rng(0)
    for _ in range(steps):
        # Half of them mostly go east: straight walks live longer, so that some episodes are truncated too.
        actions = rng.integers(4, size=count)
        actions[::2][rng.random(count // 2) < 0.8] = 0
        observation, reward, terminated, truncated, info = envs.step(actions)
        for index, twin in enumerate(twins):
            image, value, dies, ends, twin_info = twin.step(int(actions[index]))
            assert (reward[index], terminated[index], truncated[index]) == (value, dies, ends)
            ended["terminated"] += dies
            ended["truncated"] += ends
            if dies or ends:
                assert info["_final_obs"][index]
                assert (info["final_obs"][index] == image).all()
                image, twin_info = twin.reset()
            assert (observation[index] == image).all()
            assert (info["goal"][index] == twin_info["goal"]).all()
    assert min(ended.values()) > 0


def test_gymnasium_makes_it_from_its_name():
    envs = gym.make_vec("skipper/LavaWorld-v0", num_envs=3, width=6, height=5)
    observation, _ = envs.reset(seed=0)
    assert isinstance(envs.unwrapped, LavaVectorEnv)
    assert observation.shape == (3, 6, 5, 2)
    assert envs.observation_space.contains(observation)
    assert envs.metadata["autoreset_mode"] == gym.vector.AutoresetMode.SAME_STEP


def test_what_is_returned_does_not_change_later():
    envs = LavaVectorEnv(8, tasks=training_tasks(LavaConfig(), 5, seed=0))
    observation, info = envs.reset(seed=0)
    before = observation.copy(), info["goal"].copy(), info["task"].copy()
    for _ in range(20):
        envs.step(np.zeros(8, int))
    assert (observation == before[0]).all()
    assert (info["goal"] == before[1]).all()
    assert (info["task"] == before[2]).all()


def test_own_assignment_plays_every_task_in_its_place():
    tasks = training_tasks(LavaConfig(start="fixed"), 6, seed=0)
    envs = LavaVectorEnv(6, tasks=tasks, assignment="own")
    first, _ = envs.reset(seed=0)
    assert (first == tasks.observe(np.arange(6), tasks.table.start)).all()
    for _ in range(70):  # every episode has ended by then
        _, _, _, _, info = envs.step(np.zeros(6, int))
    assert (info["task"] == np.arange(6)).all()


def test_final_observations_are_there_only_when_episodes_end():
    tasks = tasks_from_text("A.G\n...\n...", world=LavaConfig(start="fixed"))
    envs = LavaVectorEnv(2, tasks=tasks)
    envs.reset(seed=0)
    _, _, _, _, info = envs.step(np.array([0, 1]))
    assert "final_obs" not in info
    observation, reward, terminated, _, info = envs.step(np.array([0, 1]))
    assert reward.tolist() == [1.0, 0.0]
    assert terminated.tolist() == info["_final_obs"].tolist() == [True, False]
    assert (info["final_obs"][0] == tasks.observe(np.array([0]), np.array([6]))[0]).all()
    assert (observation[0] == tasks.observe(np.array([0]), np.array([0]))[0]).all()


def test_a_masked_reset_begins_only_those():
    envs = LavaVectorEnv(4)
    first, _ = envs.reset(seed=0)
    second, _ = envs.reset(options={"reset_mask": np.array([True, False, False, True])})
    same = [(first[index] == second[index]).all() for index in range(4)]
    assert same == [False, True, True, False]


def test_seeds_may_be_given_one_by_one():
    envs = LavaVectorEnv(3)
    first, _ = envs.reset(seed=5)
    envs.reset(seed=0)
    assert (envs.reset(seed=[5, 6, 7])[0] == first).all()
    with_none, _ = envs.reset(seed=[5, None, 7])
    assert (with_none[[0, 2]] == first[[0, 2]]).all()
    assert not (with_none[1] == first[1]).all()


@pytest.mark.parametrize("tasks", WORLDS.values(), ids=WORLDS)
def test_a_saved_state_continues_exactly(tasks):
    rng = np.random.default_rng(0)
    actions = rng.integers(4, size=(60, 16))
    envs = LavaVectorEnv(16, tasks=tasks)
    envs.reset(seed=3)
    for action in actions[:30]:
        envs.step(action)
    saved, again = envs.state_dict(), envs.state_dict()
    for action in actions[30:]:  # what was saved must not move with the environment
        envs.step(action)
    envs.load_state_dict(again)
    other = LavaVectorEnv(16, tasks=tasks)
    other.load_state_dict(saved)
    for action in actions[30:]:
        ours, theirs = envs.step(action), other.step(action)
        for one, two in zip(ours[:4], theirs[:4], strict=True):
            assert (one == two).all()
        assert (ours[4]["goal"] == theirs[4]["goal"]).all()


def test_mistakes_are_named():
    with pytest.raises(gym.error.ResetNeeded):
        LavaVectorEnv(2).step(np.zeros(2, int))
    envs = LavaVectorEnv(2)
    envs.reset(seed=0)
    for actions in ([0], [0, 4], [-1, 0], [0.0, 1.0]):
        with pytest.raises(ValueError, match="2 actions from 0 to 3"):
            envs.step(np.array(actions))
    with pytest.raises(ValueError, match="one fixed task per environment"):
        LavaVectorEnv(2, assignment="own")
    with pytest.raises(ValueError, match="available: random, own"):
        LavaVectorEnv(2, assignment="each")
    with pytest.raises(ValueError, match="of another vector environment"):
        envs.load_state_dict(LavaVectorEnv(3).state_dict())
    with pytest.raises(ValueError, match="reset_mask"):
        envs.reset(options={"reset_mask": np.ones(3, bool)})


def test_the_time_of_an_episode_is_part_of_the_saved_state():
    tasks = tasks_from_text("A.G\n...\n...", world=LavaConfig(start="fixed", max_steps=10))
    envs, other = LavaVectorEnv(1, tasks=tasks), LavaVectorEnv(1, tasks=tasks)
    envs.reset(seed=0)
    for _ in range(7):
        envs.step(np.array([2]))
    other.load_state_dict(envs.state_dict())
    assert [bool(other.step(np.array([2]))[3][0]) for _ in range(3)] == [False, False, True]


def test_a_state_of_other_tasks_is_refused():
    one, two = (LavaVectorEnv(2, tasks=training_tasks(LavaConfig(), 3, seed)) for seed in (0, 1))
    one.reset(seed=0)
    with pytest.raises(ValueError, match="with other tasks"):
        two.load_state_dict(one.state_dict())


def test_a_state_from_before_the_first_reset_still_needs_one():
    one, two = LavaVectorEnv(2), LavaVectorEnv(2)
    two.load_state_dict(one.state_dict())
    with pytest.raises(gym.error.ResetNeeded):
        two.step(np.zeros(2, int))


def test_the_first_reset_must_be_whole_and_a_masked_one_seeds_only_its_own():
    envs = LavaVectorEnv(2)
    mask = {"reset_mask": np.array([True, False])}
    with pytest.raises(gym.error.ResetNeeded):
        envs.reset(options=mask)
    envs.reset(seed=0)
    untouched = envs.state_dict()["states"][1]
    envs.reset(seed=9, options=mask)
    assert envs.state_dict()["states"][1] == untouched


def test_seeds_of_other_forms():
    envs = LavaVectorEnv(2)
    assert (envs.reset(seed=np.int64(3))[0] == envs.reset(seed=3)[0]).all()
    for seed in ([1], [1, 2, 3], [-1, 2], -1, 2**64, 1.5):
        with pytest.raises(ValueError, match="seed"):
            envs.reset(seed=seed)


def test_without_a_seed_environments_differ():
    goals = {LavaVectorEnv(1).reset()[1]["goal"].tobytes() for _ in range(3)}
    assert len(goals) == 3


def test_a_stream_keeps_to_its_split():
    world = LavaConfig(4, 3, difficulty=0.35)
    seen = {}
    for split in ("tuning", "stream"):
        envs = LavaVectorEnv(500, tasks=TaskStream(world, split))
        envs.reset(seed=0)
        seen[split] = {scenery.tobytes() for scenery in envs.state_dict()["table.scenery"]}
    assert not seen["tuning"] & seen["stream"]


def test_it_says_that_it_does_not_render():
    with pytest.raises(ValueError, match="does not render"):
        gym.make_vec("skipper/LavaWorld-v0", num_envs=2, render_mode="rgb_array")
