from dataclasses import replace

import numpy as np
import pytest
import torch

from skipper.agents.skipper.plan_state import PlanState
from skipper.agents.skipper.vertices import VertexSource, distinct_codes, hidden_checkpoints, merge_vertices
from skipper.config import NetworkConfig, RunConfig, SkipperGeneratorConfig
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.scene import LavaScene
from skipper.envs.lava.tasks import training_tasks
from skipper.nets.estimators import SkipperNetwork
from skipper.nets.frozen import FrozenNetwork
from skipper.nets.layers import seeded_initialisation
from skipper.training.settings import configure
from skipper.types import CURRENT, GOAL, Vertices, content_keys

WORLD = LavaConfig(6, 6, max_steps=20)
SPEC, TASKS = environment_spec(WORLD), training_tasks(WORLD, 4, seed=0)
SEEN, TOLD = TASKS.observe(np.arange(4), TASKS.table.start), TASKS.observe(np.arange(4), TASKS.table.goal)


def configuration(**planning) -> RunConfig:
    base = configure("debug", "skipper-regen")
    return replace(
        base,
        world=WORLD,
        network=NetworkConfig(embedding=8, partial_width=16, hidden=32),
        generator=SkipperGeneratorConfig(generator_width=4),
        planning=replace(base.planning, **planning),
    )


def frozen_network(config: RunConfig, **settings) -> FrozenNetwork:
    """With a generator whose codes give different cells."""
    with seeded_initialisation(0):
        network = SkipperNetwork(config, SPEC)
    with torch.no_grad():
        for parameter in network.generator.fuse.parameters():
            parameter *= 3.0
    return FrozenNetwork(network, config, SPEC, **settings)


def source(config: RunConfig, spec=SPEC, **settings) -> VertexSource:
    return VertexSource(frozen_network(config, **settings), config, spec, np.random.default_rng(0))


def test_scenes_put_the_agent_where_it_is_wanted():
    scene, rows, cells = LavaScene(), np.array([0, 1]), np.array([[3, 17], [30, 0]])
    placed = scene.place_agent(TASKS.observe(rows, np.array([8, 9])), cells)
    for problem in range(2):
        assert (placed[problem] == TASKS.observe(rows[[problem, problem]], cells[problem])).all()
        assert scene.agent_cell(placed[problem]).tolist() == cells[problem].tolist()


def test_vertices_are_the_current_state_imagined_ones_and_the_goal():
    config = configuration(checkpoints=8)
    frozen, twin = frozen_network(config), np.random.default_rng(0)
    vertices = VertexSource(frozen, config, SPEC, np.random.default_rng(0)).propose(SEEN, TOLD)
    generator = frozen.network.generator
    assert (vertices.observation[:, CURRENT] == SEEN).all()
    assert (vertices.observation[:, GOAL] == TOLD).all()
    drawn = distinct_codes(4, 8, generator.bits, twin)
    assert all(len(set(row)) == 8 for row in drawn.tolist())
    with torch.no_grad():
        cells = generator(torch.from_numpy(SEEN), torch.from_numpy(drawn)).argmax(-1).numpy()
    imagined = vertices.observation[:, 1:-1].reshape(32, 6, 6, 2)
    assert (LavaScene().agent_cell(imagined).reshape(4, 8) == cells).all()
    assert (vertices.key == content_keys(vertices.observation)).all()


@pytest.mark.parametrize("parts", [(), ("vertices",)])
@pytest.mark.parametrize("seed", range(4))
def test_the_code_of_a_vertex_is_the_description_of_its_observation(parts, seed):
    config = configuration(checkpoints=8, oracle_parts=parts)
    frozen = frozen_network(config)
    with torch.no_grad():
        for parameter in frozen.network.generator.description.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed))
    vertices = VertexSource(frozen, config, SPEC, np.random.default_rng(seed)).propose(SEEN, TOLD)
    described = frozen.network.generator.codes(torch.from_numpy(vertices.observation.reshape(-1, *SPEC.shape))).numpy()
    assert (vertices.code == described.reshape(vertices.code.shape)).all()


def test_different_states_with_the_same_description_stay_apart():
    frozen = frozen_network(configuration())
    frozen.describe = lambda states: np.zeros(len(states), int)
    vertices = VertexSource(frozen, configuration(), SPEC, np.random.default_rng(0)).propose(SEEN, TOLD)
    assert (vertices.code == 0).all()
    assert vertices.present.sum(-1).tolist() == [len(set(keys)) for keys in vertices.key.tolist()]
    assert (vertices.present.sum(-1) > 2).all()


def test_descriptions_are_left_out_where_observations_are_matched():
    vertices = source(configuration(match_observations=True)).propose(SEEN, TOLD)
    assert (vertices.code == -1).all()


def test_equal_observations_are_merged_but_current_state_and_goal_stay():
    numbers = np.array([[5, 1, 2, 1, 5, 9, 9], [0, 1, 2, 3, 4, 5, 6], [7, 7, 7, 7, 7, 7, 7]])
    present = merge_vertices(numbers.reshape(3, 7, 1, 1, 1), np.zeros((3, 7), int), numbers).present
    assert present.tolist() == [
        [True, True, True, False, False, False, True],  # a second 1; the current state; the goal
        [True] * 7,
        [True, False, False, False, False, False, True],
    ]


def test_the_environment_decides_which_states_are_equal():
    def parity(states: np.ndarray) -> np.ndarray:
        cells = LavaScene().agent_cell(states.reshape(-1, *states.shape[-3:]))
        return (cells % 2).reshape(states.shape[:-3])

    vertices = source(configuration(checkpoints=20), SPEC._replace(state_key=parity)).propose(SEEN, TOLD)
    assert set(vertices.key.ravel().tolist()) == {0, 1}
    assert (vertices.present[:, 1:-1].sum(-1) <= 1).all()


def test_true_vertices_are_reachable_and_different():
    config = configuration(oracle_parts=("vertices",), match_observations=True, checkpoints=10)
    vertices = source(config).propose(SEEN, TOLD)
    cells = LavaScene().agent_cell(vertices.observation[:, 1:-1].reshape(40, 6, 6, 2)).reshape(4, 10)
    for row in range(4):
        reachable = set(TASKS.table.starts[row, : TASKS.table.start_count[row]].tolist())
        assert set(cells[row].tolist()) <= reachable
        assert len(set(cells[row].tolist())) == 10


def test_checkpoints_of_an_episode_are_kept_with_a_new_current_state():
    vertices = source(configuration(checkpoints=5))
    plans, rows = PlanState.empty(4, 7, (6, 6, 2), max_steps=20), np.array([0, 2, 3])
    earlier = vertices.keep_or_propose(SEEN, TOLD, plans, np.arange(4))
    kept = earlier.present.copy()
    kept[:, 2] = False  # pruned by the earlier plan
    plans.record_problem(np.arange(4), earlier, kept, hidden_checkpoints(earlier))
    plans.begin_episodes(np.array([False, False, True, False]))
    now = TASKS.observe(rows, TASKS.table.starts[rows, 3])
    later = vertices.keep_or_propose(now, TOLD[rows], plans, rows)
    assert (later.observation[:, CURRENT] == now).all()
    assert later.present[:, [CURRENT, GOAL]].all()
    same = (later.observation[:, 1:-1] == earlier.observation[rows, 1:-1]).all((1, 2, 3, 4))
    assert same.tolist() == [True, False, True]
    assert not later.present[[0, 2], 2].any()
    assert (later.key == content_keys(later.observation)).all()


def test_a_checkpoint_is_hidden_only_while_the_agent_stands_on_it():
    vertices = source(configuration(checkpoints=20, match_observations=True))
    plans, row = PlanState.empty(1, 22, (6, 6, 2), max_steps=20), np.array([0])

    def plan(state: np.ndarray) -> Vertices:
        found = vertices.keep_or_propose(state[None], TOLD[:1], plans, row)
        plans.record_problem(row, found, found.present, hidden_checkpoints(found))
        return found

    states = vertices.propose(SEEN[:1], TOLD[:1]).observation[0, 1:-1]
    first = plan(states[0])  # where the generator may imagine a checkpoint, too
    checkpoints = first.observation[0, 1:-1]
    others = set(first.key[0, 1:-1].tolist()) - {first.key[0, GOAL]}
    for state in [*checkpoints, SEEN[0]]:
        found = plan(state)
        here, shown = found.key[0, CURRENT], found.key[0, 1:-1][found.present[0, 1:-1]].tolist()
        assert sorted(shown) == sorted(others - {here, found.key[0, GOAL]})  # each of them once
    assert len(others) > 5


def test_imagination_in_known_scenes_is_the_same_as_in_new_ones():
    config, rows, seen = configuration(replan="step"), np.array([0, 2, 3]), set()
    incremental, anew = source(config, plans=config.planning), source(config)
    for moment in range(6):
        now = TASKS.observe(rows, TASKS.table.starts[rows, moment])
        one = incremental.propose(now, TOLD[rows], environments=rows)
        two = anew.propose(now, TOLD[rows], environments=rows)
        assert (one.observation == two.observation).all((2, 3, 4)).mean() > 0.99  # except for ties
        seen |= set(LavaScene().agent_cell(one.observation[:, 1]).tolist())
    assert len(seen) > 2
