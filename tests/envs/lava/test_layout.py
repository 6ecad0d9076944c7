"""Layouts and the transition table, against the plain-Python twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipper.benchmarks.plain import plain_world
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.layout import (
    AGENT,
    EMPTY,
    GOAL,
    GREEN,
    GREY,
    LAVA,
    RED,
    SPLITS,
    WALL,
    YELLOW,
    Rules,
    draw_tasks,
    empty_table,
)
from skipper.envs.lava.oracle import reachable, shortest_distances
from skipper.envs.lava.tasks import Tasks, tasks_from_text
from skipper.envs.rng import stream_states


def draw(world: LavaConfig, count: int, seed: int = 0) -> Tasks:
    table = empty_table(count, world.cells)
    draw_tasks(table, stream_states([seed], count), Rules.of(world))
    return Tasks(world, table)


def test_minigrid_agrees_about_the_indices():
    from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX

    ours = {"empty": EMPTY, "wall": WALL, "goal": GOAL, "lava": LAVA, "agent": AGENT}
    assert {name: OBJECT_TO_IDX[name] for name in ours} == ours
    ours = {"red": RED, "green": GREEN, "yellow": YELLOW, "grey": GREY}
    assert {name: COLOR_TO_IDX[name] for name in ours} == ours


def test_ten_thousand_layouts_of_the_paper():
    tasks = draw(LavaConfig(difficulty=0.4), 10_000)
    start, goal, lava = tasks.table.start, tasks.table.goal, tasks.lava()
    assert (lava.sum((1, 2)) == 48).all()
    assert not lava[:, [0, -1]].any()
    assert reachable(tasks)[np.arange(10_000), goal].all()
    assert set(start // 12) == {0, 11}
    assert (start // 12 + goal // 12 == 11).all()
    # Every row on either side starts and ends some task, about equally often.
    for cells in (start, goal):
        counts = np.bincount(cells, minlength=144)[[*range(12), *range(132, 144)]]
        assert counts.min() > 300
        assert counts.max() < 550
    # Lava is about equally likely in every column and, by symmetry, in mirrored rows.
    share = lava.mean(0)
    assert share[1:-1].min() > 0.2
    assert abs(share - share[:, ::-1]).max() < 0.03
    assert abs(share - share[::-1]).max() < 0.03


def test_mean_path_length_of_the_paper():
    tasks = draw(LavaConfig(difficulty=0.4), 2000)
    lengths = shortest_distances(tasks)[np.arange(2000), tasks.table.start, tasks.table.goal]
    assert lengths.mean() == pytest.approx(16.2, abs=0.3)


@settings(max_examples=60, deadline=None)
@given(
    width=st.integers(3, 15),
    height=st.integers(3, 15),
    share=st.floats(0, 1),
    walls=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_any_possible_world_has_exact_lava_and_a_path(width, height, share, walls, seed):
    most = (height - 1) / height  # the highest difficulty that leaves a path
    world = LavaConfig(width, height, difficulty=share * most, dynamics="walls" if walls else "lava")
    tasks = draw(world, 3, seed)
    assert (tasks.lava().sum((1, 2)) == int(world.difficulty * (width * height - 2 * height))).all()
    assert reachable(tasks)[np.arange(3), tasks.table.goal].all()


def test_the_highest_difficulty_leaves_one_straight_row():
    world = LavaConfig(30, 20, difficulty=19 / 20)
    tasks = draw(world, 20)
    free = ~tasks.lava()[:, 1:-1]
    assert (free.sum((1, 2)) == 28).all()
    assert (free.all(1).sum(1) == 1).all()
    # So large a grid hardly ever gets a straight walk at the usual noise: it must fall for this to end soon.
    draw(LavaConfig(60, 40, difficulty=39 / 40), 20)


def test_densities_fill_the_band_of_the_spread():
    counts = draw(LavaConfig(difficulty=0.4, spread=0.05), 3000).lava().sum((1, 2))
    assert (counts.min(), counts.max()) == (42, 53)
    assert counts.mean() == pytest.approx(47.5, abs=0.3)


def test_splits_never_share_a_layout_and_all_have_their_part():
    world = LavaConfig(4, 3, difficulty=0.35)  # small enough that every split meets every layout of its own
    layouts = {}
    for split in SPLITS:
        table = empty_table(3000, world.cells)
        draw_tasks(table, stream_states([7], 3000), Rules.of(world, split))
        layouts[split] = {scenery.tobytes() for scenery in table.scenery}
    sizes = [len(found) for found in layouts.values()]
    assert min(sizes) >= 20
    assert len(set.union(*layouts.values())) == sum(sizes)


@pytest.mark.parametrize("world", [LavaConfig(3, 3, difficulty=0.0), LavaConfig(3, 5, difficulty=0.8)])
@pytest.mark.parametrize("split", SPLITS)
def test_no_split_is_empty_however_small_the_grid(world, split):
    table = empty_table(50, world.cells)
    draw_tasks(table, stream_states([1], 50), Rules.of(world, split))
    assert (table.goal // world.height != 1).all()


def test_the_search_for_a_layout_ends():
    rules = Rules.of(LavaConfig(3, 3))._replace(split=len(SPLITS))  # no layout can be of it
    with pytest.raises(RuntimeError, match="no layout was found"):
        draw_tasks(empty_table(1, 9), stream_states([1], 1), rules)


def test_an_unknown_split_is_refused():
    with pytest.raises(ValueError, match="available: train, stream, evaluation, tuning"):
        Rules.of(LavaConfig(), "test")


@pytest.mark.parametrize("dynamics", ["lava", "walls"])
def test_the_transition_table_is_that_of_the_plain_twin(dynamics):
    for world in (LavaConfig(dynamics=dynamics), LavaConfig(5, 7, difficulty=0.5, dynamics=dynamics)):
        tasks = draw(world, 20)
        for row in range(20):
            plain = plain_world(tasks, row)
            for cell in range(world.cells):
                place = divmod(cell, world.height)
                assert tasks.table.terminal[row, cell] == plain.terminal(place)
                ours = [divmod(int(to), world.height) for to in tasks.table.successor[row, cell]]
                assert ours == [plain.move(place, action) for action in range(4)]
                image = tasks.observe(np.array([row]), np.array([cell]))[0]
                assert (image == np.array(plain.observe(place))).all()


def test_starts_are_the_non_terminal_cells_that_the_start_reaches():
    tasks = tasks_from_text("A..#.\n##.#.\n...#G", "A..#.\n##..G\n###..")
    first, second = (set(tasks.table.starts[row, : tasks.table.start_count[row]].tolist()) for row in (0, 1))
    assert first == {0, 3, 6, 7, 8, 5, 2}
    assert second == {0, 3, 6, 7, 10, 11, 14}  # the corner at (4, 0) lies behind the goal


def test_actions_are_east_south_west_north():
    tasks = tasks_from_text("...\n.A.\n..G")
    assert tasks.table.successor[0, 4].tolist() == [7, 5, 1, 3]
    assert tasks.table.successor[0, 0].tolist() == [3, 1, 0, 0]  # off the grid: stay


def test_agent_colours_say_what_is_under_it():
    cells = np.array([0, 3, 6])
    for dynamics, solid in (("lava", YELLOW), ("walls", GREY)):
        tasks = tasks_from_text("A#G\n...\n...", world=LavaConfig(dynamics=dynamics))
        images = tasks.observe(np.zeros(3, int), cells).reshape(3, -1, 2)
        assert images[np.arange(3), cells].tolist() == [[AGENT, RED], [AGENT, solid], [AGENT, GREEN]]
