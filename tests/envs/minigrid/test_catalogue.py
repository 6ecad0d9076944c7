"""Every registered MiniGrid environment is supported, or refused with a reason, in bounded time."""

import time

import pytest

from skipper.envs.minigrid.catalogue import describe
from skipper.envs.minigrid.things import minigrid_ids


def test_there_are_environments():
    assert len(minigrid_ids()) > 100


@pytest.mark.parametrize("env_id", minigrid_ids())
def test_every_environment_is_supported_or_refused(env_id, capsys):
    begin = time.process_time()
    entry = describe(env_id)
    assert bool(entry.reason) != bool(entry.layouts)
    assert time.process_time() - begin < 60
    assert capsys.readouterr().out == ""  # which would get between the lines of the listing


def test_the_tasks_that_planners_are_tried_on_offer_everything():
    for name in ("SimpleCrossingS9N1", "LavaCrossingS9N1", "FourRooms", "LavaGapS7", "DoorKey-5x5"):
        entry = describe(f"MiniGrid-{name}-v0")
        assert (entry.reason, entry.goal, entry.oracle, entry.table) == ("", True, True, True)
    assert describe("MiniGrid-DoorKey-5x5-v0").parts == 4


def test_reasons_say_what_is_missing():
    assert "mission changes" in describe("MiniGrid-GoToDoor-5x5-v0").reason
    assert "hides" in describe("MiniGrid-ObstructedMaze-1Dlh-v0").reason
    assert "12 doors, and 12 keys, balls and boxes" in describe("MiniGrid-Playground-v0").reason
    assert "cannot draw a layout" in describe("MiniGrid-WFC-MazeSimple-v0").reason
    unlock = describe("MiniGrid-Unlock-v0")
    assert (unlock.goal, unlock.oracle, unlock.table) == (False, False, True)
    moving = describe("MiniGrid-Dynamic-Obstacles-5x5-v0")
    assert (moving.goal, moving.oracle, moving.table, moving.states) == (True, False, False, None)
