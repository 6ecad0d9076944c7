"""LEAP's targets and losses, by hand and against exact distances."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from every_pair import TASKS, every_pair

from skipper.agents.hindsight import UpdateBatch
from skipper.agents.leap.config import LeapConfig
from skipper.agents.leap.update import LeapUpdater
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.oracle import UNREACHABLE, shortest_distances
from skipper.envs.lava.tasks import tasks_from_text
from skipper.losses import distance_target, scalar_loss, two_hot
from skipper.nets.heads import distance_support, expect_pairs
from skipper.nets.layers import seeded_initialisation
from skipper.training.settings import configure

CAP = 16.0


def configuration(**learning) -> LeapConfig:
    config = configure("debug", "leap", world=TASKS.world)
    assert isinstance(config, LeapConfig)
    return replace(config, learning=replace(config.learning, **learning))


def make_updater(**learning) -> LeapUpdater:
    with seeded_initialisation(0):
        return LeapUpdater.build(configuration(**learning), environment_spec(TASKS.world))


def batch_of(updater: LeapUpdater, real: int | None = None) -> UpdateBatch:
    """All transitions with all targets, bootstrapping from the online network."""
    hindsight, _ = every_pair()
    estimators = updater.online.network.estimators
    with torch.no_grad():
        sigma = estimators.partial(hindsight.state)
    distance = expect_pairs(estimators.distance, sigma, hindsight.next, hindsight.target)
    count = len(hindsight.action) if real is None else real
    return UpdateBatch(hindsight, count, distance, None, None, None, None, 0, 1.0)


def test_distances_become_two_bins():
    def histogram(value: float) -> list[float]:
        return two_hot(torch.tensor(value), distance_support(16)).tolist()

    assert histogram(1.0) == [1.0] + [0.0] * 15
    assert histogram(1.25) == pytest.approx([0.75, 0.25] + [0.0] * 14)
    assert histogram(0.5) == histogram(1.0)
    assert histogram(16.0) == histogram(1001.0) == histogram(np.inf) == [0.0] * 15 + [1.0]


def tabular_distances(tasks, task: int = 0, sweeps: int = 40) -> np.ndarray:
    """(S, A, S) distances that the targets of LEAP converge to, from all transitions with all targets."""
    table = tasks.table
    cells = table.successor.shape[1]
    after = table.successor[task].astype(np.int64)  # (S, A)
    distance = np.full((cells, 4, cells), 3.0)
    reached = torch.from_numpy(after[..., None] == np.arange(cells))
    terminal = torch.from_numpy(np.broadcast_to(table.terminal[task][after][..., None], reached.shape).copy())
    for _ in range(sweeps):
        following = torch.from_numpy(distance[after].min(2))  # (S, A, S) least over the next action
        flat = (column.reshape(-1) for column in (reached, terminal, following, torch.ones(reached.shape)))
        distance = distance_target(*flat).clamp(1.0, CAP).reshape(reached.shape).numpy()
    return distance


@pytest.mark.parametrize("text", ["A.#\n...\n.#G", "A...\n.##.\n.##.\n...G", "A.#.\n..##\n...#\n...G"])
def test_tabular_distances_equal_the_truth(text):
    tasks = tasks_from_text(text)
    table, distance = tasks.table, tabular_distances(tasks)
    cells = table.successor.shape[1]
    true = shortest_distances(tasks)[0].astype(float)  # (S, S)
    true = np.where(true == UNREACHABLE, np.inf, true)
    for cell in np.flatnonzero(~table.terminal[0]):
        for target in range(cells):
            expected = []
            for action in range(4):
                after = table.successor[0, cell, action]
                expected.append(
                    1.0 if after == target else CAP if table.terminal[0, after] else 1.0 + true[after, target]
                )
            np.testing.assert_allclose(distance[cell, :, target], np.minimum(expected, CAP))
            if cell != target:
                assert distance[cell, :, target].min() == min(CAP, true[cell, target])


def test_an_enclosed_cell_is_as_far_as_can_be():
    distance = tabular_distances(tasks_from_text("A.#.\n..##\n...#\n...G"))
    enclosed = 12  # the upper right corner
    assert (distance[[0, 1, 4], :, enclosed] == CAP).all()


def test_suppression_adds_distance_losses_and_nothing_else():
    """Of the second half of the pairs, as if their targets were imagined."""
    plain, none, some = (make_updater(delusion_scale=scale) for scale in (0.0, 0.0, 0.25))
    half = len(every_pair()[0].action) // 2
    whole = batch_of(plain)
    real = whole._replace(
        hindsight=whole.hindsight._replace(
            **{name: getattr(whole.hindsight, name)[:half] for name in whole.hindsight._fields[2:]}
        ),
        bootstrap=whole.bootstrap[:half],
        real=half,
    )
    results = {
        "plain": plain.update_estimators(real),
        "none": none.update_estimators(batch_of(none, half)),
        "some": some.update_estimators(batch_of(some, half)),
    }
    np.testing.assert_allclose(results["plain"].losses, results["some"].losses, rtol=1e-5)
    loss = {name: result.metrics["loss"] for name, result in results.items()}
    assert loss["none"] == pytest.approx(loss["plain"], rel=1e-5)
    assert loss["some"] == pytest.approx(loss["plain"] + 0.25 * results["some"].metrics["delusion"], rel=1e-5)


def test_the_terminal_head_learns_nothing_from_imagined_targets():
    updater = make_updater()
    losses = updater.losses(batch_of(updater, 10))
    assert losses["terminal"].shape == (10,)
    losses["distance"][10:].sum().backward()
    assert all(weight.grad is None for weight in updater.online.network.estimators.terminal.parameters())
    assert any(weight.grad is not None for weight in updater.online.network.estimators.partial.parameters())


def test_importance_weights_count_one_by_one_or_by_their_mean():
    losses, weight = torch.tensor([1.0, 2.0, 6.0]), torch.tensor([1.0, 0.5, 0.0])
    assert make_updater(importance_weights="sample").weighted(losses, weight) == pytest.approx(2.0 / 3)
    assert make_updater(importance_weights="mean").weighted(losses, weight) == pytest.approx(3.0 * 0.5)


def test_episodes_bound_distances():
    updater = make_updater()
    config = replace(configuration(), replay=replace(configuration().replay, all_pairs=True))
    bounded = LeapUpdater(replace(config, learning=replace(config.learning, hindsight_bound=True)), updater.online)
    batch = batch_of(updater)
    path = batch._replace(hindsight=batch.hindsight._replace(path_steps=torch.ones(len(batch.hindsight.action))))
    free, tight = updater.losses(path)["distance"], bounded.losses(path)["distance"]
    pairs, head = path.hindsight, updater.online.network.estimators.distance
    with torch.no_grad():
        sigma = updater.online.network.estimators.partial(pairs.state)
        logits = head(sigma[pairs.source], sigma[pairs.target])[torch.arange(len(pairs.action)), pairs.action]
    torch.testing.assert_close(tight, scalar_loss(logits, torch.ones(len(logits)), head.support), rtol=1e-4, atol=1e-4)
    assert not torch.allclose(free, tight)
    torch.testing.assert_close(bounded.losses(batch)["distance"], updater.losses(batch)["distance"])
