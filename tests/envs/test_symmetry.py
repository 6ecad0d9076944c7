import numpy as np
import pytest

from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import environment_spec
from skipper.envs.lava.layout import DX, DY
from skipper.envs.lava.tasks import training_tasks
from skipper.envs.symmetry import grid_symmetries
from skipper.types import oracle_of

MOVES = np.stack([DX, DY], -1)


@pytest.mark.parametrize("size", [(6, 6), (7, 5)])
def test_images_move_as_their_originals_do(size):
    world = LavaConfig(*size)
    tasks, symmetries = training_tasks(world, 20, seed=0), grid_symmetries(*size, MOVES)
    rows = np.arange(20)
    cells = tasks.table.start
    before = tasks.observe(rows, cells)
    for image in range(len(symmetries.cells)):
        which = np.full(20, image)
        place = symmetries.cells[image].argsort()  # where each cell went
        for action in range(4):
            after = tasks.observe(rows, tasks.table.successor[rows, cells, action])
            # The image is a task of its own: its truth must know the same way by the renamed action.
            values = oracle_of(environment_spec(world)).action_values(before, after)
            turned = oracle_of(environment_spec(world)).action_values(
                symmetries.images(before, which), symmetries.images(after, which)
            )
            np.testing.assert_allclose(turned[:, symmetries.actions[image]], values)
        moved = symmetries.images(before, which).reshape(20, -1, 2)
        np.testing.assert_array_equal(moved[rows, place[cells]], before.reshape(20, -1, 2)[rows, cells])


def test_squares_have_eight_images_and_the_first_is_the_original():
    square, oblong = grid_symmetries(6, 6, MOVES), grid_symmetries(7, 5, MOVES)
    assert len(square.cells) == 8
    assert len(oblong.cells) == 4
    for symmetries in (square, oblong):
        assert len({tuple(row) for row in symmetries.cells.tolist()}) == len(symmetries.cells)
        np.testing.assert_array_equal(symmetries.cells[0], np.arange(symmetries.cells.shape[1]))
        np.testing.assert_array_equal(symmetries.actions[0], np.arange(4))
        assert (np.sort(symmetries.actions, axis=1) == np.arange(4)).all()


def test_a_batch_may_hold_different_images():
    symmetries = grid_symmetries(4, 4, MOVES)
    seen = np.random.default_rng(0).integers(0, 9, (8, 4, 4, 2), dtype=np.uint8)
    images = symmetries.images(seen, np.arange(8))
    for which in range(8):
        alone = symmetries.images(seen[which : which + 1], np.array([which]))
        np.testing.assert_array_equal(images[which], alone[0])
    np.testing.assert_array_equal(images[0], seen[0])
    assert not np.array_equal(images[1], seen[1])


def test_only_symmetries_that_map_moves_to_moves_are_kept():
    without_north = grid_symmetries(5, 5, MOVES[:3])
    assert without_north.actions.tolist() == [[0, 1, 2], [2, 1, 0]]  # the identity, and the flip along x
    assert (without_north.cells[1] == np.arange(25).reshape(5, 5)[::-1].ravel()).all()
