import numpy as np
import pytest
import torch
from skipper.nets.estimates import Estimates, learned_edges

from skipper.agents.skipper.vertices import imagined_vertices
from skipper.config import WorldConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.tasks import training_tasks
from skipper.nets.compiled.heads import StillHeads
from skipper.nets.edge_cache import EdgeCache
from skipper.nets.ensemble import SymmetryEnsemble
from skipper.nets.estimators import EstimatorNetwork
from skipper.nets.layers import seeded_initialisation
from skipper.planning.proxy import Vertices
from skipper.presets import DEBUG
from skipper.types import scene_of

WORLD = WorldConfig(6, 6)
SPEC, TASKS = environment_spec(WORLD), training_tasks(WORLD, 6, seed=0)
ROWS = np.array([4, 0, 2])


@pytest.fixture
def network() -> EstimatorNetwork:
    with seeded_initialisation(0):
        return EstimatorNetwork(DEBUG.network, SPEC)


def estimates_of(network: EstimatorNetwork, ensemble_size: int = 1) -> Estimates:
    return Estimates(network, 0.9, ensemble=SymmetryEnsemble(SPEC.symmetries, ensemble_size))


def atlas_of(network: EstimatorNetwork) -> EdgeCache:
    return EdgeCache(estimates_of(network), scene_of(SPEC))


def seen(tasks: np.ndarray, cells: int) -> np.ndarray:
    return TASKS.observe(tasks, TASKS.table.starts[tasks, cells])


def vertices_at(tasks: np.ndarray, cells: np.ndarray, now: int = 0) -> Vertices:
    ends = seen(tasks, now), TASKS.observe(tasks, TASKS.table.goal[tasks])
    return imagined_vertices(scene_of(SPEC), ends, cells, cells, None)


def useful(vertices: Vertices, terminal: np.ndarray) -> np.ndarray:
    """(B, N, N) bool, where plans may have a use for edges."""
    both = vertices.present[:, :, None] & vertices.present[:, None] & ~terminal[:, :, None]
    return both & ~np.eye(both.shape[1], dtype=bool)


def assert_same_edges(edge_cache: EdgeCache, estimates: Estimates, vertices: Vertices) -> None:
    every = np.ones((*vertices.present.shape, vertices.present.shape[1]), bool)
    found, plain = (edges.where(every) for edges in (edge_cache.edges(vertices), learned_edges(estimates, vertices)))
    asked = useful(vertices, plain.terminal)
    for one, two in zip(found, plain, strict=True):
        known = asked if one.ndim == 3 else vertices.present
        np.testing.assert_allclose(one[known], two[known], rtol=1e-4, atol=1e-6)
    assert (found.distance[~asked] == np.inf).all()
    assert (found.reward[~asked] == 0.0).all()


@pytest.mark.parametrize("ensemble_size", [1, 3])
def test_what_is_remembered_is_what_would_be_estimated(network, ensemble_size):
    estimates, rng = estimates_of(network, ensemble_size), np.random.default_rng(0)
    edge_cache = EdgeCache(estimates, scene_of(SPEC))
    for step in range(8):
        edge_cache.open(ROWS, seen(ROWS, step % 4))
        assert_same_edges(edge_cache, estimates, vertices_at(ROWS, rng.integers(36, size=(3, 7)), step % 4))


def test_nothing_is_estimated_twice(network, monkeypatch):
    asked = []
    for name in ("ways", "rewards"):
        real = getattr(StillHeads, name)
        monkeypatch.setattr(StillHeads, name, lambda *args, real=real: asked.append(len(args[2])) or real(*args))
    edge_cache, cells = atlas_of(network), np.arange(24).reshape(3, 8)
    every = np.ones((3, 10, 10), bool)
    for _ in range(3):
        edge_cache.open(ROWS, seen(ROWS, 0))
        edge_cache.edges(vertices_at(ROWS, cells)).where(every)
    assert len(asked) == 2  # ways and rewards, once each
    edge_cache.open(ROWS, seen(ROWS, 1))  # the agents have moved on
    edge_cache.edges(vertices_at(ROWS, cells, now=1)).where(every)
    assert len(asked) <= 4
    assert sum(asked[2:]) < 0.6 * sum(asked[:2])


def test_a_new_scene_or_new_weights_turn_the_page(network):
    edge_cache, cells = atlas_of(network), np.arange(24).reshape(3, 8)
    edge_cache.open(ROWS, seen(ROWS, 0))
    edge_cache.edges(vertices_at(ROWS, cells))
    others = np.array([4, 1, 3])  # the first environment stays in its task
    edge_cache.open(ROWS, seen(others, 0))
    assert_same_edges(edge_cache, estimates_of(network), vertices_at(others, cells))
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(1.1)
    edge_cache.open(ROWS, seen(others, 0))
    assert_same_edges(edge_cache, estimates_of(network), vertices_at(others, cells))


def test_ways_back_are_left_out_where_nobody_asks_for_them(network):
    edge_cache = EdgeCache(estimates_of(network), scene_of(SPEC), back=False)
    edge_cache.open(ROWS, seen(ROWS, 0))
    vertices = vertices_at(ROWS, np.tile(np.arange(30, 36), (3, 1)))
    found, plain = edge_cache.edges(vertices), learned_edges(estimates_of(network), vertices)
    assert (found.distance[:, :, 0] == np.inf).all()
    both = useful(vertices, plain.terminal)
    both[:, :, 0] = False
    np.testing.assert_allclose(found.distance[both], plain.distance[both], rtol=1e-4)
    assert (found.where(np.ones_like(both)).reward[:, :, 0] == 0.0).all()
    assert (found.discount[:, :, 0] == 0.0).all()
    edge_cache.open(ROWS, seen(ROWS, 1))  # the agents moved on: ways to where they were are asked for now
    moved = vertices_at(ROWS, np.concatenate([TASKS.table.starts[ROWS, :1], [[35]] * 3], axis=1), now=1)
    found, plain = edge_cache.edges(moved), learned_edges(estimates_of(network), moved)
    both = useful(moved, plain.terminal)
    both[:, :, 0] = False
    found, plain = found.where(both), plain.where(both)
    np.testing.assert_allclose(found.reward[both], plain.reward[both], rtol=1e-4, atol=1e-6)
