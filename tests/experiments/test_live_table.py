import io
import time

import pytest
from rich.console import Console

from skipper.experiments.execute import Progress
from skipper.experiments.live_table import LiveTable, duration
from skipper.experiments.works import Evaluation, Training

TRAINING = Training("modelfree", "debug", 33, (("steps", 1_000),))


def console(height: int = 40) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=160, height=height, color_system=None)


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "?"), (40, "40 s"), (90, "2 min"), (5_400, "1.5 h"), (180_000, "2.1 d")]
)
def test_time_spans(seconds, text):
    assert duration(seconds) == text


def test_runs_are_shown_with_progress_and_time_left():
    now, screen = time.monotonic(), console()
    runs = [
        Progress(Evaluation(TRAINING)),
        Progress(TRAINING, "running", done=600, done_before=200, began=now - 100.0, node="0123456789"),
    ]
    assert runs[0].seconds_left is None
    assert runs[1].seconds_left == pytest.approx(100.0, abs=2.0)
    with LiveTable(2, screen) as table:
        table.show(runs)
        table.say("finished: another")
    shown = screen.file.getvalue()
    assert "1 running, 1 waiting" in shown
    assert "600 / 1,000" in shown
    assert "2 min" in shown
    assert "01234567 " in shown
    assert shown.index("running │") < shown.index("waiting │")
    assert "finished: another" in shown


def test_steps_of_a_failed_run_are_not_waited_for():
    screen, other = console(), Training("modelfree", "debug", 34, (("steps", 1_000),))
    runs = [Progress(TRAINING, "running", done=600, began=time.monotonic()), Progress(other, "running", done=100)]
    with LiveTable(2, screen) as table:
        table.show(runs)
        runs[0].state, runs[1].done = "failed", 200
        table._began -= 10.0
        table.show(runs)
    assert "1 running, 1 failed; 10 s so far, 1 min left" in screen.file.getvalue()
    assert table._left(runs) == pytest.approx(80.0, abs=2.0)


def test_more_runs_than_lines_are_counted():
    screen = console(height=12)
    with LiveTable(2, screen) as table:
        table.show([Progress(Training("modelfree", "debug", seed)) for seed in range(30)])
    assert "... and 26 more" in screen.file.getvalue()


def test_without_a_terminal_only_lines_are_printed():
    screen = Console(file=io.StringIO(), width=160)
    with LiveTable(2, screen) as table:
        table.show([Progress(TRAINING)])
        table.say("a line")
    assert screen.file.getvalue() == "a line\n"
