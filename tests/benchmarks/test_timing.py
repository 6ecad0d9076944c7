import numpy as np

from skipper.benchmarks import timing


def test_calls_take_turns_and_each_has_its_own_column(monkeypatch):
    now, calls = [0.0], []
    monkeypatch.setattr(timing, "perf_counter", lambda: now[0])

    def work(name: str, seconds: float):
        def call() -> None:
            calls.append(name)
            now[0] += seconds

        return call

    found = timing.seconds_in_turns([work("short", 1.0), work("long", 3.0)], seconds=39.0)
    np.testing.assert_allclose(found, [[1.0, 3.0]] * 10)
    assert calls == ["short", "long"] * 13  # three untimed turns
    assert timing.median_seconds(work("only", 2.0), seconds=1.0) == 2.0
