"""Tests over seeds against hand-computed and textbook numbers, and against other libraries."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestIndPower, TTestPower

from skipper.analysis.statistics import (
    SeedTest,
    iqm,
    mcnemar,
    paired,
    paper_entry,
    probability_of_improvement,
    seeds_needed,
    sign_test,
    t_power,
    welch,
    welch_power,
)

# Extra sleep with two drugs, the same ten patients (Student 1908).
FIRST_DRUG = np.array([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0])
SECOND_DRUG = np.array([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])
# Heights of cross-fertilised minus self-fertilised plants in eighths of an inch, fifteen pairs (Darwin 1876).
DARWIN = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48], float)


def test_welch_by_hand():
    # Means .8 and .45, variances .01 and .05/3, squared standard errors .01/3 and .05/12: together .0075.
    # t = .35 / sqrt(.0075) = 4.0415; df = .0075^2 / ((.01/3)^2 / 2 + (.05/12)^2 / 3) = 4.9592.
    found = welch(np.array([0.9, 0.7, 0.8]), np.array([0.5, 0.3, 0.4, 0.6]))
    assert found.difference == pytest.approx(0.35)
    assert found.t == pytest.approx(4.0415, abs=1e-4)
    assert found.df == pytest.approx(4.9592, abs=1e-4)


def test_welch_on_the_textbook_data():
    found = welch(SECOND_DRUG, FIRST_DRUG)
    assert (found.t, found.df, found.p_two_sided) == pytest.approx((1.8608, 17.776, 0.07939), abs=1e-3)
    assert (found.low, found.high) == pytest.approx((-0.2055, 3.3655), abs=1e-4)
    theirs = stats.ttest_ind(SECOND_DRUG, FIRST_DRUG, equal_var=False, alternative="greater")
    assert found.p_one_sided == pytest.approx(theirs.pvalue)


def test_the_paired_test_on_the_textbook_data():
    found = paired(SECOND_DRUG, FIRST_DRUG)
    assert (found.t, found.df, found.p_two_sided) == pytest.approx((4.0621, 9, 0.002833), abs=1e-4)
    assert (found.low, found.high) == pytest.approx((0.7001, 2.4599), abs=1e-4)
    assert found.p_one_sided == pytest.approx(found.p_two_sided / 2)
    assert found.paper is None, "the paper has no paired tests"


def test_signs_by_hand_and_on_fishers_example():
    # Of the eight sums of +-3 +-1 +-2, 6 and 4 are at least 3 - 1 + 2 = 4; as many are at most -4.
    assert sign_test(np.array([3.0, -1.0, 2.0])) == (2 / 8, 4 / 8)
    # Fisher (1935): 1,726 of 32,768 assignments give 314 or more in either direction.
    assert sign_test(DARWIN) == (863 / 32768, 1726 / 32768)


@pytest.mark.parametrize("pairs", [2, 3, 5])
def test_few_pairs_cannot_be_significant_by_signs(pairs):
    found = paired(np.linspace(0.9, 0.95, pairs), np.full(pairs, 0.1))
    assert (found.p_signs_one_sided, found.p_signs_two_sided) == (0.5**pairs, 0.5 ** (pairs - 1))


def test_many_pairs_draw_signs_at_random():
    differences = np.random.default_rng(0).normal(0.3, 1.0, size=30)
    one_sided, two_sided = sign_test(differences)
    assert (one_sided, two_sided) == pytest.approx(
        [stats.ttest_1samp(differences, 0.0, alternative=side).pvalue for side in ("greater", "two-sided")], abs=0.01
    )
    assert sign_test(np.ones(30))[0] > 0.0, "p is never zero"


@pytest.mark.parametrize("test", [welch, paired])
def test_swapped_sides_negate(test):
    one, two = test(SECOND_DRUG, FIRST_DRUG), test(FIRST_DRUG, SECOND_DRUG)
    assert (two.difference, two.t, two.low, two.high) == pytest.approx((-one.difference, -one.t, -one.high, -one.low))
    assert two.p_two_sided == pytest.approx(one.p_two_sided)
    assert two.p_one_sided == pytest.approx(1 - one.p_one_sided)
    assert two.seeds_for_power == one.seeds_for_power


@pytest.mark.parametrize("test", [welch, paired])
def test_where_no_test_is_valid_there_is_no_number(test):
    assert test(np.array([0.9]), np.array([0.1])) == SeedTest(test.__name__.replace("w", "W"), 0.8)
    same = test(np.array([0.1 + 0.2] * 3), np.array([0.3] * 3))
    assert same.t is same.p_two_sided is same.low is same.seeds_for_power is None


@pytest.mark.parametrize(("effect", "seeds"), [(0.5, 64), (0.8, 26), (1.2, 12)])
def test_seeds_needed_are_those_of_the_textbook(effect, seeds):
    # Cohen (1988): two groups of 64 and 26 for d = .5 and .8, two-sided .05, power .8.
    assert seeds_needed(lambda number: welch_power(effect, 1.0, 1.0, number)) == seeds
    assert TTestIndPower().solve_power(effect, power=0.8, alpha=0.05) <= seeds


@pytest.mark.parametrize("effect", [0.0, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("seeds", [2, 3, 10])
def test_power_is_that_of_another_library(effect, seeds):
    theirs = TTestIndPower().power(effect, seeds, 0.05)
    assert welch_power(effect, 1.0, 1.0, seeds) == pytest.approx(theirs, abs=1e-6)
    theirs = TTestPower().power(effect, seeds, 0.05)
    assert t_power(effect * seeds**0.5, seeds - 1) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("df", [1.0, 2.1, 19.0, 500.0])
def test_power_rises_to_one(df):
    powers = [t_power(shift, df) for shift in np.arange(0.0, 400.0, 0.5)]
    assert powers[0] == pytest.approx(0.05)
    assert (np.diff(powers) > -1e-8).all()
    assert powers[-1] == pytest.approx(1.0)
    assert t_power(-3.0, df) == t_power(3.0, df)


def test_power_with_unequal_variances_is_that_of_simulated_tests():
    rng, seeds, repetitions = np.random.default_rng(0), 8, 20_000
    one, two = rng.normal(3.0, 1.0, (repetitions, seeds)), rng.normal(0.0, 3.0, (repetitions, seeds))
    simulated = np.mean(stats.ttest_ind(one, two, axis=1, equal_var=False).pvalue < 0.05)
    assert welch_power(3.0, 1.0, 9.0, seeds) == pytest.approx(simulated, abs=0.01)


def test_a_difference_of_zero_needs_more_seeds_than_there_are():
    assert seeds_needed(lambda number: welch_power(0.0, 1.0, 1.0, number)) is None


def with_t(t: float, seeds: int) -> tuple[np.ndarray, np.ndarray]:
    """Two samples of equal variance 1 whose Welch statistic is ``t``."""
    sample = np.arange(seeds, dtype=float)
    sample = (sample - sample.mean()) / sample.std(ddof=1)
    return sample + t * (2 / seeds) ** 0.5, sample


def test_entries_of_the_papers_tables():
    # One-sided .05 with 38 degrees of freedom is t = 1.686. Just above it more than 20 seeds are needed, as in some of
    # the paper's entries: (1.66 + .85)^2 * 2 / .5376^2 = 43.6 with the quantiles of t for 86 degrees.
    assert welch(*with_t(1.68, 20)).paper == "NO"
    assert welch(*with_t(-5.0, 20)).paper == "NO"
    assert welch(*with_t(1.70, 20)).paper == 44
    # A power of literally 0.2 would never need more than the 20 seeds of a significant result.
    first, second = with_t(1.70, 20)
    assert seeds_needed(lambda number: welch_power(first.mean() - second.mean(), 1.0, 1.0, number), 0.2) < 20
    assert welch(*with_t(30.0, 20)).paper == 2
    assert paper_entry(SeedTest("Welch", 0.1), 1.0, 1.0) == "NO"


def test_interquartile_mean_by_hand():
    # Of eight numbers the two smallest and the two largest go: (.3 + .4 + .5 + .6) / 4.
    success = np.array([[0.6, 0.0, 0.4, 1.0], [0.1, 0.5, 0.9, 0.3]])  # (runs, sets)
    assert iqm(success) == pytest.approx(0.45)
    assert iqm(np.stack([success, success + 1])) == pytest.approx([0.45, 1.45])


def test_probability_of_improvement_by_hand():
    # First set: .9 beats both, .5 ties with one and beats the other: 3.5 of 4. Second set: never.
    first, second = np.array([[0.9, 0.1], [0.5, 0.1]]), np.array([[0.5, 0.2], [0.1, 0.2]])
    assert probability_of_improvement(first, second) == pytest.approx((3.5 / 4 + 0) / 2)
    assert probability_of_improvement(second, first) == pytest.approx(1 - (3.5 / 4 + 0) / 2)
    theirs = stats.mannwhitneyu(SECOND_DRUG, FIRST_DRUG).statistic / 100
    assert probability_of_improvement(SECOND_DRUG[:, None], FIRST_DRUG[:, None]) == pytest.approx(theirs)


def test_mcnemar_by_hand():
    # Ten tasks solved by the first alone, two by the second: p = 2 (1 + 12 + 66) / 2^12.
    first = np.array([True] * 15 + [False] * 7)
    second = np.array([True] * 5 + [False] * 10 + [True] * 2 + [False] * 5)
    assert mcnemar(first, second) == (10, 2, pytest.approx(158 / 4096))
    assert mcnemar(first, first) == (0, 0, 1.0)
