import json

import pytest
from scipy.stats import norm

from skipper.analysis.statistics import Row, compare, read_results


def results(*success, episodes=100):
    return {str(level): Row(share, episodes) for level, share in enumerate(success)}


def test_a_clear_difference_is_seen_by_both_tests():
    better, worse = (
        [results(share, share - 0.1) for share in shares] for shares in ((0.9, 0.8, 0.85), (0.5, 0.6, 0.4))
    )
    found = compare(better, worse)
    assert found.better == pytest.approx([0.85, 0.75, 0.8])
    assert found.difference == pytest.approx(0.35)
    assert found.p_tasks < 1e-10
    assert found.p_seeds == pytest.approx(1 / 20)
    assert compare(worse, better).p_tasks > 1 - 1e-10
    assert compare(worse, better).p_seeds == 1.0


def test_the_test_over_tasks_is_the_textbook_one():
    found = compare([results(0.6, episodes=200)], [results(0.5, episodes=100)])
    share = (120 + 50) / 300
    z = 0.1 / (share * (1 - share) * (1 / 200 + 1 / 100)) ** 0.5
    assert found.p_tasks == pytest.approx(norm.sf(z))
    assert found.p_seeds == 0.5
    same = compare([results(1.0)], [results(1.0)])
    assert (same.p_tasks, same.p_seeds) == (1.0, 1.0)


def test_what_cannot_be_compared_is_refused(tmp_path):
    with pytest.raises(ValueError, match="same evaluation sets"):
        compare([results(1.0)], [results(1.0, 0.5)])
    with pytest.raises(ValueError, match="at least one file"):
        compare([], [results(1.0)])
    path = tmp_path / "run.json"
    rows = ('"much", "episodes": 3', "1.0", '1.5, "episodes": 3', '0.5, "episodes": 0')
    for text in ("nothing", "[1]", "{}", *(f'{{"0.25": {{"success": {row}}}}}' for row in rows)):
        path.write_text(text)
        with pytest.raises(ValueError, match="does not hold"):
            read_results(path)
    with pytest.raises(ValueError, match="too many"):
        compare([results(1.0)] * 15, [results(0.5)] * 15)
    path.write_text(json.dumps({level: {"success": 0.5, "episodes": 100} for level in ("training", "0")}))
    assert read_results(path) == results(0.5)
