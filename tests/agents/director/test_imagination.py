import torch

from skipper.agents.director.imagination import imagine, manager_trajectory, rewards, worker_trajectory
from skipper.agents.director.trajectories import max_cosine
from skipper.agents.director.world_model import State
from tests.agents.director.director_fixtures import network, small, uniform

BATCH = 5


def rollout(**behaviour):
    config, spec = small(behaviour=behaviour)
    networks = network(config, spec)
    start = networks.world_model.dynamics.initial(BATCH)
    terminal = torch.tensor([0.0, 0, 1, 0, 0])
    random = uniform(config.behaviour.horizon + 1, BATCH, sum(networks.random_numbers))
    return config, networks, imagine(networks, start.detach(), terminal, config.behaviour, random)


def test_a_skill_is_held_until_the_manager_chooses_again():
    config, networks, found = rollout()
    goals = networks.goals.goal(found.skill)
    torch.testing.assert_close(found.goal, goals)
    for t in range(1, 9):
        same = torch.equal(found.skill[t], found.skill[t - 1])
        assert same == (t % config.behaviour.skill_duration != 0)  # a fresh one at t = H, too


def test_states_follow_the_actions():
    _, networks, found = rollout()
    random = uniform(9, BATCH, sum(networks.random_numbers))
    before = State(*found.features[3].tensor_split([found.goal.shape[-1]], -1))
    latents = networks.random_numbers[2]
    after = networks.world_model.dynamics.imagine(before, found.action[3, :, 0], random[3, :, -latents:])
    torch.testing.assert_close(after.features, found.features[4])
    assert torch.equal(found.continuation[0], torch.tensor([1.0, 1, 0, 1, 1]))
    wanted = networks.world_model.predict_continuation(found.features[5])
    torch.testing.assert_close(found.continuation[5], wanted)


def test_which_goal_an_arrival_is_compared_to():
    config, networks, found = rollout()
    random = uniform(8, BATCH, networks.random_numbers[0])
    arrival = rewards(networks, found, config.behaviour, random)["goal"]
    pursued_config, _ = small(behaviour={"goal_reward": "pursued"})
    pursued = rewards(networks, found, pursued_config.behaviour, random)["goal"]
    deter = found.features[..., : config.model.deterministic]
    for t in range(1, 9):
        torch.testing.assert_close(arrival[t - 1], max_cosine(found.goal[t], deter[t]))
        torch.testing.assert_close(pursued[t - 1], max_cosine(found.goal[t - 1], deter[t]))
        assert torch.equal(arrival[t - 1], pursued[t - 1]) == (t % 4 != 0)


def test_what_worker_and_manager_learn_from():
    config, networks, found = rollout()
    given = rewards(networks, found, config.behaviour, uniform(8, BATCH, networks.random_numbers[0]))
    assert set(given) == {"extrinsic", "exploration", "goal"}
    worker = worker_trajectory(found, given, config.behaviour)
    manager = manager_trajectory(found, given, config.behaviour)
    features, width = found.features.shape[-1], config.model.deterministic
    assert worker.inputs.shape == (5, 2 * BATCH, features + width)
    assert manager.inputs.shape == (3, BATCH, features)
    # The last goal of a piece is the one that was pursued in it.
    torch.testing.assert_close(worker.inputs[4, :BATCH, features:], found.goal[0])
    torch.testing.assert_close(worker.inputs[4, :BATCH, :features], found.features[4])
    torch.testing.assert_close(manager.action[1], found.skill[4])
    # A start in a terminal state has no weight.
    assert (worker.weight[:, 2] == 0).all()
    assert (manager.weight[:, 2] == 0).all()
    assert (worker.weight[0, :2] == 1).all()


def test_what_an_imagined_end_takes_away():
    config, networks, found = rollout()
    given = rewards(networks, found, config.behaviour, uniform(8, BATCH, networks.random_numbers[0]))
    continuation = torch.tensor([1, 0.9, 0.8, 1, 0.5, 1, 1, 0.7, 1])
    found = found._replace(continuation=continuation[:, None].expand(-1, BATCH))
    piece = worker_trajectory(found, given, config.behaviour).weight
    whole_config, _ = small(behaviour={"worker_weight": "rollout"})
    whole = worker_trajectory(found, given, whole_config.behaviour).weight
    # In the first piece they are the same; the second one knows that .36 are left of it, of .99 ** 4.
    torch.testing.assert_close(whole[:, :BATCH], piece[:, :BATCH])
    torch.testing.assert_close(piece[:, BATCH], torch.tensor([0.5, 0.495, 0.49005, 0.339605, 0.336209]))
    torch.testing.assert_close(whole[:, BATCH], 0.99**4 * 0.9 * 0.8 * piece[:, BATCH])


def test_the_full_size_splits_as_published():
    config, _ = small("paper")
    starts = config.learning.batch_size * config.replay.sequence_length
    pieces = config.behaviour.horizon // config.behaviour.skill_duration
    assert (starts, starts * pieces, config.behaviour.skill_duration + 1, pieces + 1) == (192, 384, 5, 3)
