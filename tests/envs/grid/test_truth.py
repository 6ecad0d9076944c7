"""The oracle against brute force, and placements against the observations that they describe."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from skipper.envs.grid.search import MOST_STATES, StateGraph, TooManyStatesError, read_table
from skipper.envs.grid.truth import distances_from
from skipper.envs.minigrid.family import minigrid_family
from skipper.envs.minigrid.full_grid import FullGrid
from skipper.types import oracle_of, placement_of

IDS = ("MiniGrid-LavaGapS5-v0", "MiniGrid-DoorKey-5x5-v0", "MiniGrid-MultiRoom-N2-S4-v0")


@pytest.mark.parametrize("env_id", IDS)
def test_distances_equal_those_of_all_short_action_sequences(env_id):
    """Every sequence of up to four actions is played in the stock environment."""
    family = minigrid_family(env_id)
    world, env = family.world("debug"), family.env
    seed = int(family.training_tasks(world, 1, 0).seeds[0])
    fewest: dict[bytes, int] = {}
    start = env.reset(seed)
    for length in range(5):
        for actions in itertools.product(family.facts.actions, repeat=length):
            observation, over = env.reset(seed), False
            for action in actions:
                if over:
                    break
                observation, _, over, _ = env.step(action)
            fewest.setdefault(observation.tobytes(), length)
    seen = np.stack([np.frombuffer(key, np.uint8).reshape(env.shape) for key in fewest])
    oracle = oracle_of(family.spec(world))
    found = oracle.distances(np.broadcast_to(start, seen.shape), seen)
    assert found.tolist() == list(fewest.values())


@pytest.mark.parametrize("env_id", IDS)
def test_the_optimal_policy_solves_every_task_in_the_fewest_steps(env_id):
    family = minigrid_family(env_id)
    world = family.world("debug")
    tasks = family.evaluation_tasks(world, "unseen", 3, seed=0)
    truth, oracle = family.truth(tasks), oracle_of(family.spec(world))
    envs = family.vector_env(3, tasks, world, one_each=True)
    observation, info = envs.reset(seed=0)
    assert (truth.observe(np.arange(3), truth.goals()) == info["goal"]).all()
    needed = [len(truth.optimal_path(row)) - 1 for row in range(3)]
    distance = oracle.distances(observation, info["goal"])
    assert distance.tolist() == needed
    solved = np.zeros(3, int)
    for step in range(1, max(needed) + 1):
        observation, reward, terminated, *_ = envs.step(oracle.action_values(observation).argmax(-1))
        solved[(solved == 0) & terminated & (reward > 0)] = step
    assert solved.tolist() == needed


def test_edges_rewards_and_terminal_states():
    family = minigrid_family("MiniGrid-LavaGapS5-v0")
    world, env = family.world("debug"), family.env
    table = read_table(env, 0, family.facts.actions)
    env.reset(0)
    goal = env.goal()
    inside_wall = table.observation[0].copy()
    inside_wall[..., -1] = 0
    inside_wall[0, 0, -1] = 1
    states = np.stack([table.observation[0], goal, inside_wall])[None]
    distance, discount, reward, terminal = oracle_of(family.spec(world)).edges(states, 0.9)
    here = (table.observation == goal).all((1, 2, 3)).argmax()
    assert distance[0, 0, 1] == distances_from(table.successor, 0)[here]
    assert np.isinf(distance[0, 0, 2])
    assert np.isinf(distance[0, 2, :2]).all()
    assert discount[0, 0, 1] == pytest.approx(0.9 ** distance[0, 0, 1])
    assert reward[0, 0, 1] == pytest.approx(0.9 ** (distance[0, 0, 1] - 1))
    assert terminal.tolist() == [[False, True, False]]


@pytest.mark.parametrize("env_id", [*IDS, "MiniGrid-Unlock-v0"])
def test_placements_draw_the_states_that_they_describe(env_id):
    family = minigrid_family(env_id)
    table = read_table(family.env, 3, family.facts.actions)
    scene, states = family.scene, table.observation
    placements = placement_of(scene, states)
    context = np.repeat(states[:1], len(states), axis=0)
    assert (scene.place_agent(context, placements[:, None])[:, 0] == states).all()
    assert len(np.unique(scene.scenery(states), axis=0)) == 1
    assert placement_of(scene, states[:0]).shape == (0,)  # a batch without a rewarded state
    assert (scene.agent_cell(states) == placements % (states.shape[1] * states.shape[2])).all()


def test_symmetric_images_follow_the_same_rules():
    """An image of a state is loaded into the environment; its renamed actions lead to images of successors."""
    family = minigrid_family("MiniGrid-DoorKey-5x5-v0")
    table = read_table(family.env, 0, family.facts.actions)
    symmetries = family.spec(family.world("debug")).symmetries
    env, rng = FullGrid(family.env_id, family.things, 100), np.random.default_rng(0)
    env.reset(0)
    assert len(symmetries.cells) == 8
    for state in rng.choice(np.flatnonzero(~table.terminal), 20):
        for image, action in itertools.product(range(8), range(len(family.actions))):
            seen, after = symmetries.images(
                table.observation[[state, table.successor[state, action]]], np.full(2, image)
            )
            assert env.load(seen)
            found = env.step(family.facts.actions[symmetries.actions[image, action]])
            assert (found.observation == after).all()


def test_a_search_gives_up_and_truth_says_so():
    family = minigrid_family("MiniGrid-DoorKey-5x5-v0")
    graph = StateGraph(family.env, family.facts.actions, limit=20)
    with pytest.raises(TooManyStatesError, match="more than 20 states"):
        graph.explore(family.env.reset(0))
    assert family.facts.states < MOST_STATES
    world = replace(family.world("debug"), reward="own")
    assert not family.has_tables(world)
