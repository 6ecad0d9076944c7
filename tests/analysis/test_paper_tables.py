from pathlib import Path

import numpy as np
import pytest

from skipper.analysis.paper_tables import comparison_rows, entry, significance_table, success_rows
from skipper.analysis.results_file import Run
from skipper.analysis.statistics import SeedTest, seed_spread, welch

SETS = ("0.25", "0.35", "0.45", "0.55")


def runs(agent: str, rates, spread: float = 0.02, tasks: int = 20) -> list[Run]:
    """Runs of three seeds, with success rates around ``rates`` of the sets."""
    found = []
    for seed, shift in enumerate((-spread, 0.0, spread)):
        solved = {
            name: np.arange(tasks) < round((rate + shift) * tasks) for name, rate in zip(SETS, rates, strict=True)
        }
        about = {"agent": agent, "env": "lava", "split": "evaluation", "evaluation_seed": 30, "seed": seed}
        success = {name: float(each.mean()) for name, each in solved.items()}
        found.append(Run(Path(f"{agent}-{seed}"), success, solved, about | {"weights": f"{agent}{seed}"}))
    return found


def test_entries_are_numbers_of_seeds_or_no():
    # 20 seeds of standard deviation .1 and a difference of .05: t = 1.58, one-sided p = .06.
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(20)
    noise = 0.1 * (noise - noise.mean()) / noise.std(ddof=1)
    assert entry(welch(0.55 + noise, 0.5 + noise), 20) == "NO*"
    # A difference of 1.5 standard deviations: with 6 seeds P(t > 1.81 - 2.60) = .78 is too little, with 7
    # P(t > 1.78 - 2.81) = .84 is enough.
    found = welch(0.65 + noise, 0.5 + noise)
    assert entry(found, 20) == str(found.paper) == "7"
    assert entry(found, 6) == "7*"
    assert entry(SeedTest("Welch", 0.1), 1) == "-"
    # Seeds that do not differ have no t: no advantage is none, an advantage cannot be tested.
    same = np.zeros(3)
    assert entry(welch(same, same), 3) == "NO*"
    assert entry(welch(same, same + 1), 3) == "NO*"
    assert entry(welch(same + 1, same), 3) == "-"


def test_the_table_has_a_row_per_number_and_baseline():
    strong, weak = (0.9, 0.9, 0.8, 0.8), (0.5, 0.9, 0.8, 0.4)
    agent = {"50": runs("once", strong, 0.05), "inf": []}
    others = {"leap": {"50": runs("leap", weak, 0.05)}, "director": {}}
    table = significance_table("once", agent, others)
    assert table.columns[2:6] == list(SETS)
    assert [row[:2] for row in table.rows] == [
        ["50", "leap"],
        ["50", "director"],
        ["inf", "leap"],
        ["inf", "director"],
    ]
    first = table.rows[0]
    assert (first[2], first[3], first[4], first[5]) == ("2", "NO*", "NO*", "2")
    assert first[6].startswith("+0.200 (")
    assert first[9].startswith("0.750 (")  # ahead in two sets, equal in two
    assert table.rows[1][2:] == ["-"] * 8
    assert any("bootstrap's intervals are too narrow" in note for note in table.notes)
    assert any("for choosing settings, not for reports" in note for note in table.notes)  # seeds 0 to 2
    # A star counts the smaller side: three seeds are needed, and one agent has two.
    few = {"leap": {"50": runs("leap", (0.5,) * 4, 0.1)[:2]}}
    assert significance_table("once", {"50": runs("once", (0.8,) * 4, 0.1)}, few).rows[0][2] == "3*"


def test_runs_that_cannot_be_compared_are_named_below_the_table():
    mine, theirs = runs("once", (0.9,) * 4), runs("leap", (0.5,) * 4)
    odd = [run._replace(success={"0.25": 0.5}) for run in theirs]
    table = significance_table("once", {"50": mine}, {"leap": {"50": odd}})
    assert table.rows[0][2:] == ["-"] * 8
    assert any(note.startswith("50 training tasks, leap: all files must be") for note in table.notes)


def test_success_with_intervals_over_seeds():
    results = {"once": runs("once", (0.9, 0.8, 0.7, 0.6), 0.05), "leap": []}
    table = success_rows(results, {"once": [0.9, 1.0, 1.0]})
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert row["seeds"] == "3"
    # A standard deviation of .05 over three seeds: 4.303 * .05 / sqrt(3) = .124.
    assert row["0.25"] == "0.900 ± 0.124"
    assert row["mean"] == "0.750 ± 0.124"
    assert row["worst seed"] == "0.700"
    assert row["training tasks"].startswith("0.967")
    assert table.rows[1][1:3] == ["0", "-"]


def test_the_first_agent_is_compared_with_all_others():
    table = comparison_rows(
        {"once": runs("once", (0.9,) * 4, 0.05), "leap": runs("leap", (0.5,) * 4, 0.05), "none": []}
    )
    assert table is not None
    ((label, difference, p, test, *_),) = table.rows
    assert (label, test) == ("leap", "Welch")
    assert difference.startswith("+0.400 (")
    assert float(p) < 0.001
    assert comparison_rows({"once": runs("once", (0.9,) * 4)}) is None


def test_networks_of_which_only_some_are_on_both_sides_are_not_compared():
    shared = runs("once", (0.9,) * 4)
    table = comparison_rows({"once": shared, "regen": shared[:2]})
    assert table is not None
    assert "neither a paired nor an unpaired test" in table.rows[0][1]


HALF = 4.3027 * 0.1 / 3**0.5  # of three seeds with standard deviation .1


@pytest.mark.parametrize(
    ("values", "spread"),
    [
        ([0.4], (0.4, np.nan, np.nan)),
        ([0.6, 0.4], (0.5, 0.4, 0.6)),
        ([0.4, 0.5, 0.6], (0.5, 0.5 - HALF, 0.5 + HALF)),
    ],
)
def test_the_spread_over_seeds(values, spread):
    np.testing.assert_allclose(seed_spread(np.array(values)), spread, rtol=1e-4)


def test_two_seeds_are_shown_as_they_are():
    table = success_rows({"once": runs("once", (0.8,) * 4, 0.1)[:2]}, {"once": [0.5, 1.0]})
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert (row["mean"], row["training tasks"]) == ("0.750 (0.700, 0.800)", "0.750 (0.500, 1.000)")
