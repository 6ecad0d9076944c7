"""Batched k-medoids against the paper's looped search, a library, and exhaustive search."""

from itertools import combinations

import kmedoids
import numpy as np
import pytest

from skipper.planning.medoids import k_medoids


def problems(count: int, vertices: int, seed: int = 0) -> np.ndarray:
    """Distances as an agent sees them: min(D, D^T) of noisy asymmetric ones, truncated at 16."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(0, 12, size=(count, vertices, 2))
    distance = abs(places[:, :, None] - places[:, None]).sum(-1) * rng.uniform(
        0.7, 1.8, size=(count, vertices, vertices)
    )
    distance = np.minimum(distance, 16.0)
    distance[:, range(vertices), range(vertices)] = 0.0
    return np.minimum(distance, distance.transpose(0, 2, 1))


def cost(distance: np.ndarray, kept: np.ndarray) -> float:
    return float(distance[:, kept].min(-1).sum())


def alternating(distance: np.ndarray, fixed: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """The paper's search, looped: random medoids, assign, take each cluster's best, until nothing changes."""
    free = rng.permutation(np.flatnonzero(~fixed))[: k - fixed.sum()]
    medoids = np.concatenate([np.flatnonzero(fixed), free])
    while True:
        owner = distance[:, medoids].argmin(-1)
        new = medoids.copy()
        for cluster in range(k):
            members = np.flatnonzero(owner == cluster)
            if not fixed[medoids[cluster]] and len(members):
                new[cluster] = members[distance[np.ix_(members, members)].sum(0).argmin()]
        if cost(distance, new) >= cost(distance, medoids):
            return medoids
        medoids = new


def test_never_worse_than_the_papers_search():
    distance = problems(100, 32)
    fixed = np.zeros((100, 32), bool)
    fixed[:, [0, 31]] = True
    kept = k_medoids(distance, np.ones((100, 32), bool), fixed, 12)
    assert (kept.sum(-1) == 12).all()
    assert kept[:, [0, 31]].all()
    rng = np.random.default_rng(1)
    ours = np.array([cost(distance[row], kept[row]) for row in range(100)])
    theirs = np.array([cost(distance[row], alternating(distance[row], fixed[row], 12, rng)) for row in range(100)])
    assert (ours <= theirs + 1e-9).mean() > 0.97
    assert ours.mean() < theirs.mean()


def test_as_good_as_the_library_where_nothing_is_fixed():
    distance = problems(50, 32)
    none = np.zeros((50, 32), bool)
    kept = k_medoids(distance, ~none, none, 12)
    ours = np.mean([cost(distance[row], kept[row]) for row in range(50)])
    theirs = np.mean([kmedoids.fasterpam(distance[row], 12, random_state=0).loss for row in range(50)])
    assert ours <= theirs * 1.01


@pytest.mark.parametrize("k", [1, 2, 3])
def test_nearly_always_the_best_of_all_choices(k):
    distance = problems(60, 8)
    fixed = np.zeros((60, 8), bool)
    fixed[:, 2] = True
    kept = k_medoids(distance, np.ones((60, 8), bool), fixed, k)
    best = [
        min(cost(distance[row], np.array([2, *others])) for others in combinations({*range(8)} - {2}, k - 1))
        for row in range(60)
    ]
    ours = [cost(distance[row], kept[row]) for row in range(60)]
    assert np.mean(np.array(ours) <= np.array(best) + 1e-9) > 0.9


def test_absent_vertices_are_neither_kept_nor_counted():
    distance = problems(20, 16)
    present = np.random.default_rng(0).random((20, 16)) < 0.5
    kept = k_medoids(distance, present, np.zeros((20, 16), bool), 6)
    assert not (kept & ~present).any()
    assert (kept.sum(-1) == np.minimum(present.sum(-1), 6)).all()
    for row in range(20):
        inside = np.flatnonzero(present[row])
        alone = k_medoids(
            distance[row][np.ix_(inside, inside)][None], present[None, row, inside], np.zeros((1, len(inside)), bool), 6
        )
        assert (inside[alone[0]] == np.flatnonzero(kept[row])).all()


def test_infinite_distances_are_refused():
    with pytest.raises(AssertionError, match="must be finite"):
        k_medoids(np.full((1, 2, 2), np.inf), np.ones((1, 2), bool), np.zeros((1, 2), bool), 1)
