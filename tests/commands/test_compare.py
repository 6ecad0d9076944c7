import json
import sys
from pathlib import Path

import numpy as np
import pytest

from skipper.cli import main

RESULTS = Path(__file__).parents[2] / "results" / "skipper"


@pytest.fixture
def compare(monkeypatch, capsys):
    """Runs the command and returns what it prints."""

    def run(better, worse, *options):
        files = ["--better", *map(str, better), "--worse", *map(str, worse)]
        monkeypatch.setattr(sys, "argv", ["skipper", "compare", *files, *options])
        main()
        return capsys.readouterr().out

    return run


@pytest.fixture
def runs(tmp_path):
    """Writes a file per network, with random outcomes at a success rate."""
    rng = np.random.default_rng(0)

    def write(agent, networks, success, split="evaluation"):
        paths = []
        for number, name in enumerate(networks):
            rows = {}
            for level in ("0.25", "0.55", "training"):
                outcomes = "".join(rng.choice(["s", "d"], p=[success, 1 - success], size=50))
                rows[level] = {"success": outcomes.count("s") / 50, "episodes": 50, "outcomes": outcomes}
            about = {"agent": agent, "env": "lava", "split": split, "evaluation_seed": 20, "seed": 20 + number}
            paths.append(tmp_path / f"{agent}-{name}.json")
            paths[-1].write_text(json.dumps({"about": about | {"weights": name}, "sets": rows}))
        return paths

    return write


def test_tables_name_the_test_and_why(compare, runs):
    regen, once = runs("skipper-regen", "abc", 0.9), runs("skipper-once", "abc", 0.6)
    text = compare(regen, once, "--resamples", "200")
    assert "the same networks on both sides, the same tasks: paired t-test over seeds" in text
    assert "exact test by changing signs: p 0.25, p better 0.125" in text
    text = compare(regen, runs("modelfree", "def", 0.3), "--resamples", "200")
    assert "different networks, the same tasks: Welch's t-test over seeds" in text
    assert "seeds for power .8" in text
    assert "n/a" not in text


def test_one_network_of_each_is_no_evidence_about_agents(compare, runs):
    text = compare(runs("skipper-regen", "a", 0.9), runs("modelfree", "d", 0.3), "--resamples", "200")
    rows = {line.split("  ")[1]: line for line in text.splitlines() if line.startswith("  p")}
    assert all(line.split()[-3:] == ["n/a"] * 3 for line in rows.values()), rows
    assert "McNemar's exact test, about these two networks only" in text
    assert "no test over seeds is valid" in text


def test_training_tasks_and_resamples_are_options(compare, runs):
    files = runs("skipper-regen", "ab", 0.9), runs("modelfree", "cd", 0.3)
    unseen, training = (json.loads(compare(*files, "--json", *options)) for options in ([], ["--training"]))
    assert (set(unseen["sets"]), set(training["sets"])) == ({"0.25", "0.55"}, {"training"})
    again = json.loads(compare(*files, "--json", "--seed", "1", "--resamples", "500"))
    assert again["test"] == unseen["test"]
    assert again["intervals"]["difference"] == pytest.approx(unseen["intervals"]["difference"], abs=0.05)
    assert again["intervals"] != unseen["intervals"]
    with pytest.raises(SystemExit, match="at least 100"):
        compare(*files, "--resamples", "5")


@pytest.mark.parametrize(("better", "worse", "options"), [("regen", "once", ["--paired"]), ("once", "modelfree", [])])
def test_committed_comparisons_are_what_the_command_gives(better, worse, options, compare):
    files = (sorted((RESULTS / "evaluate").glob(f"{name}-?.json")) for name in (better, worse))
    found = json.loads(compare(*files, "--json", *options))
    committed = json.loads((RESULTS / f"compare_{better}_{worse}.json").read_text())
    assert found["notes"] == committed["notes"]
    assert found["test"] == pytest.approx(committed["test"])
