import json

import numpy as np
import pytest

from skipper.analysis.comparison import as_json, compare
from skipper.analysis.results_file import read_run

SETS = ("0.25", "0.35")
ABOUT = {"agent": "skipper-regen", "env": "lava", "steps": 600_000, "split": "evaluation", "evaluation_seed": 20}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def write(tmp_path):
    """Writes a file of one run: outcomes of every set, and what it says about itself."""
    count = 0

    def make(*outcomes, training=None, **about):
        nonlocal count
        count += 1
        named = dict(zip(SETS, outcomes, strict=False)) | ({"training": training} if training else {})
        sets = {
            name: {"success": each.count("s") / len(each), "episodes": len(each), "outcomes": each}
            for name, each in named.items()
        }
        path = tmp_path / f"{count}.json"
        path.write_text(json.dumps({"about": ABOUT | {"episodes": 10} | about, "sets": sets}))
        return path

    return make


@pytest.fixture
def write_old(tmp_path):
    """Writes a file of an older version: success rates by set."""
    count = 0

    def make(*success):
        nonlocal count
        count += 1
        path = tmp_path / f"old-{count}.json"
        rows = zip((*SETS, "training"), (*success, 0.5), strict=False)
        path.write_text(json.dumps({name: {"success": each, "episodes": 10} for name, each in rows}))
        return path

    return make


def networks(write, names, solved, **about):
    """Runs that solve so many of ten tasks of each set."""
    made = []
    for number, (name, count) in enumerate(zip(names, solved, strict=True)):
        outcomes = "s" * count + "d" * (10 - count)
        made.append(read_run(write(outcomes, outcomes, seed=20 + number, weights=name, **about)))
    return made


def test_different_networks_are_tested_as_independent(write, rng):
    better = networks(write, "abc", (9, 7, 8))
    worse = networks(write, "defg", (5, 3, 4, 6), agent="modelfree")
    found = compare(better, worse, rng, resamples=200)
    assert (found.test.name, found.shared_networks, found.shared_tasks) == ("Welch", False, True)
    assert found.test.t == pytest.approx(4.0415, abs=1e-4)  # worked out in test_statistics.py
    assert found.sets["0.25"].t == pytest.approx(found.test.t)
    assert (found.better.agent, found.worse.agent) == ("skipper-regen", "modelfree")
    assert found.better.iqm == pytest.approx(0.8)
    assert found.intervals.difference.low < 0.35 < found.intervals.difference.high
    assert found.mcnemar is None
    assert len(found.notes) == 1
    assert "3 seeds" in found.notes[0]


def test_shared_networks_are_paired_by_their_weights(write, rng):
    better = networks(write, "abc", (9, 8, 9))
    worse = networks(write, "cab", (7, 8, 6), agent="skipper-once")  # in another order
    found = compare(better, worse, rng, resamples=200)
    assert (found.test.name, found.shared_networks) == ("paired", True)
    assert found.worse.means == pytest.approx([0.8, 0.6, 0.7])
    # Differences .1, .2, .2: mean 1/6, standard deviation .1/sqrt(3), t = (1/6) / (.1/3) = 5.
    assert found.test.t == pytest.approx(5.0)
    assert found.test.p_signs_one_sided == pytest.approx(0.125)


def test_mixtures_of_shared_and_other_networks_are_refused(write, rng):
    for names in ("abd", "ab"):
        with pytest.raises(ValueError, match="neither a paired nor an unpaired"):
            compare(networks(write, "abc", (9, 8, 9)), networks(write, names, (7, 6, 8)[: len(names)]), rng)


def test_files_of_older_versions_allow_tests_over_seeds_only(write_old, rng):
    better, worse = (
        [read_run(write_old(share, share)) for share in shares] for shares in ((0.9, 0.8, 0.9), (0.8, 0.6, 0.7))
    )
    found = compare(better, worse, rng)
    assert (found.test.name, found.shared_tasks, found.intervals, found.mcnemar) == ("Welch", None, None, None)
    assert any("--paired" in note for note in found.notes)
    found = compare(better, worse, rng, pair_in_order=True)
    assert found.test.name == "paired"
    assert found.test.t == pytest.approx(5.0)
    assert not any("--paired" in note for note in found.notes)
    with pytest.raises(ValueError, match="as many files on both sides, not 3 and 2"):
        compare(better, worse[:2], rng, pair_in_order=True)


def test_files_that_name_their_networks_are_not_paired_otherwise(write, rng):
    with pytest.raises(ValueError, match="the sides share none"):
        compare(networks(write, "ab", (9, 8)), networks(write, "cd", (7, 6)), rng, pair_in_order=True)


def test_one_run_on_a_side_gives_no_p_over_seeds(write, rng):
    one = read_run(write("ssssssssss", "ssdddddddd", weights="a", seed=20))
    two = read_run(write("ddddddssss", "ssdddddddd", weights="b", seed=20))
    found = compare([one], [two], rng, resamples=200)
    assert found.test.p_two_sided is found.test.low is found.test.seeds_for_power is None
    assert found.mcnemar == (6, 0, pytest.approx(2 / 2**6))
    assert "no test over seeds" in found.notes[0]
    assert "this one network" in found.notes[1]
    other = read_run(write("ddddddssss", "ssdddddddd", weights="b", seed=20, evaluation_seed=21))
    found = compare([one], [other], rng, resamples=200)
    assert (found.shared_tasks, found.mcnemar) == (False, None)


def test_training_tasks_are_compared_when_asked_for(write, rng):
    path = write("ss", "ss", training="sd", weights="a", seed=20)
    assert set(read_run(path).success) == set(SETS)
    assert read_run(path, training=True).success == {"training": 0.5}
    with pytest.raises(ValueError, match="success rates on training tasks"):
        read_run(write("ss", "ss"), training=True)


def test_numbers_for_tuning_are_called_so(write, rng):
    for about in ({"seed": 3}, {"evaluation_seed": 1}, {"split": "tuning"}):
        runs = [read_run(write("sd", "sd", weights=name, **({"seed": 20} | about))) for name in "abcd"]
        assert any("not for reports" in note for note in compare(runs[:2], runs[2:], rng, resamples=100).notes)


def test_a_side_is_one_agent_each_network_once(write, write_old, rng):
    other = networks(write, "xy", (5, 6))
    runs = networks(write, "ab", (9, 8))
    with pytest.raises(ValueError, match="given twice"):
        compare([runs[0], runs[0]], other, rng)
    old = read_run(write_old(0.5, 0.5))
    with pytest.raises(ValueError, match="given twice"):
        compare([old, old], other, rng)
    with pytest.raises(ValueError, match="same network"):
        compare([*runs, *networks(write, "a", (7,), evaluation_seed=21)], other, rng)
    for setting in ({"agent": "skipper-once"}, {"steps": 280_000}, {"revisit_penalty": 0.5}):
        with pytest.raises(ValueError, match=f"differ in {next(iter(setting))}"):
            compare([*runs, *networks(write, "c", (7,), **setting)], other, rng)
    random = [read_run(write("dd", "dd", agent="random")) for _ in range(2)]
    with pytest.raises(ValueError, match="random was not trained"):
        compare(runs, random, rng)
    compare(runs, random[:1], rng, resamples=100)


def test_what_cannot_be_compared_is_refused(write, tmp_path, rng):
    one = read_run(write("sd", "sd", weights="a"))
    with pytest.raises(ValueError, match="same evaluation sets"):
        compare([one], [read_run(write("sd", weights="b"))], rng)
    with pytest.raises(ValueError, match="different environments"):
        compare([one], [read_run(write("sd", "sd", weights="b", env="minigrid"))], rng)
    with pytest.raises(ValueError, match="at least one file"):
        compare([], [one], rng)


def test_files_that_hold_nothing_of_the_kind_are_refused(write, tmp_path):
    path = tmp_path / "run.json"
    rows = ('"much", "episodes": 3', "1.0", '1.5, "episodes": 3', '0.5, "episodes": 0', 'NaN, "episodes": 3')
    for text in ("nothing", "[1]", "{}", "3", *(f'{{"0.25": {{"success": {row}}}}}' for row in rows)):
        path.write_text(text)
        with pytest.raises(ValueError, match="does not hold"):
            read_run(path)
    row = {"success": 0.5, "episodes": 2, "outcomes": "sd"}
    broken = ({"outcomes": "sx"}, {"outcomes": ""}, {"outcomes": 3}, {"episodes": 3}, {"success": 0.9})
    for change in broken:
        path.write_text(json.dumps({"about": ABOUT, "sets": {"0.25": row | change}}))
        with pytest.raises(ValueError, match=r"does not hold|contradicts itself"):
            read_run(path)
    for about in ({}, {"agent": "random"}, ABOUT | {"weights": [3]}, 3, None):
        path.write_text(json.dumps({"about": about, "sets": {"0.25": row}}))
        with pytest.raises(ValueError, match="does not"):
            read_run(path)


def test_the_comparison_is_json(write, rng):
    found = compare(networks(write, "ab", (9, 8)), networks(write, "cd", (7, 6)), rng, resamples=100)
    content = json.loads(json.dumps(as_json(found)))
    assert content["difference"] == pytest.approx(0.2)
    assert content["test"]["p_two_sided"] == found.test.p_two_sided
    assert len(content["intervals"]["difference"]) == 2
