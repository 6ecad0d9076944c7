from dataclasses import replace

import numpy as np
import torch

from skipper.agents.skipper.plan_state import PlanState
from skipper.agents.skipper.vertices import VertexSource, merge_vertices
from skipper.config import GeneratorConfig, NetworkConfig, RunConfig
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.scene import LavaScene
from skipper.envs.lava.tasks import training_tasks
from skipper.nets.estimators import SkipperNetwork
from skipper.nets.frozen import FrozenNetwork
from skipper.nets.layers import seeded_initialisation
from skipper.training.settings import configure
from skipper.types import CURRENT, GOAL, content_keys

WORLD = LavaConfig(6, 6, max_steps=20)
SPEC, TASKS = environment_spec(WORLD), training_tasks(WORLD, 4, seed=0)
SEEN, TOLD = TASKS.observe(np.arange(4), TASKS.table.start), TASKS.observe(np.arange(4), TASKS.table.goal)


def configuration(**planning) -> RunConfig:
    base = configure("debug", "skipper-regen")
    return replace(
        base,
        world=WORLD,
        network=NetworkConfig(embedding=8, partial_width=16, hidden=32),
        generator=GeneratorConfig(generator_width=4),
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
    frozen = frozen_network(config)
    vertices = VertexSource(frozen, config, SPEC, np.random.default_rng(0)).propose(SEEN, TOLD)
    generator = frozen.network.generator
    assert (vertices.observation[:, CURRENT] == SEEN).all()
    assert (vertices.observation[:, GOAL] == TOLD).all()
    assert (vertices.code[:, CURRENT] == generator.codes(torch.from_numpy(SEEN)).numpy()).all()
    assert (vertices.code[:, GOAL] == generator.codes(torch.from_numpy(TOLD)).numpy()).all()
    codes = vertices.code[:, 1:-1]
    assert all(len(set(row)) == 8 for row in codes.tolist())
    with torch.no_grad():
        cells = generator(torch.from_numpy(SEEN), torch.from_numpy(codes)).argmax(-1).numpy()
    imagined = vertices.observation[:, 1:-1].reshape(32, 6, 6, 2)
    assert (LavaScene().agent_cell(imagined).reshape(4, 8) == cells).all()
    assert (vertices.key == content_keys(vertices.observation)).all()


def test_descriptions_are_left_out_where_observations_are_matched():
    vertices = source(configuration(match_observations=True)).propose(SEEN, TOLD)
    assert (vertices.code[:, [CURRENT, GOAL]] == -1).all()
    assert (vertices.code[:, 1:-1] >= 0).all()


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
    earlier = vertices.propose(SEEN, TOLD)
    plans.vertices[:], plans.codes[:], plans.kept[:] = earlier.observation, earlier.code, earlier.present
    plans.kept[:, 2] = False  # pruned by the earlier plan
    now = TASKS.observe(rows, TASKS.table.starts[rows, 3])
    fresh = vertices.propose(now, TOLD[rows])
    first = np.array([False, True, False])
    kept = vertices.keep_checkpoints(fresh, plans, rows, first)
    assert (kept.observation[:, CURRENT] == now).all()
    assert (kept.code[:, CURRENT] == fresh.code[:, CURRENT]).all()
    for row, environment in enumerate(rows):
        expected = fresh.observation[row] if first[row] else earlier.observation[environment]
        assert (kept.observation[row, 1:] == expected[1:]).all()
        if not first[row]:
            assert not kept.present[row, 2]
    assert kept.present[:, [CURRENT, GOAL]].all()
    assert (kept.present[1] == fresh.present[1]).all()


def test_imagination_in_known_scenes_is_the_same_as_in_new_ones():
    config, rows, seen = configuration(regenerate="step"), np.array([0, 2, 3]), set()
    incremental, anew = source(config, edge_cache=True), source(config)
    for moment in range(6):
        now = TASKS.observe(rows, TASKS.table.starts[rows, moment])
        one = incremental.propose(now, TOLD[rows], environments=rows)
        two = anew.propose(now, TOLD[rows], environments=rows)
        np.testing.assert_array_equal(one.code, two.code)
        assert (one.observation == two.observation).all((2, 3, 4)).mean() > 0.99  # except for ties
        seen |= set(LavaScene().agent_cell(one.observation[:, 1]).tolist())
    assert len(seen) > 2
