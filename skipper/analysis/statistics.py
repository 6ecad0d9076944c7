"""Tests over training seeds, their power, and summaries of several runs.

An observation is one training run: its success rate, in one evaluation set or as the mean over all of them.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats

from skipper.types import Array

ALPHA = 0.05  # probability of a type-I error; the intervals are its complement, 95%
POWER = 0.8  # 1 - the probability of a type-II error
PAPER_SEEDS = 20  # of every agent in the paper
MAX_SEEDS = 10_000  # larger numbers of seeds are not searched
MAX_EXACT_PAIRS = 20  # 2 ** 20 assignments of signs
RANDOM_SIGNS = 100_000
NO_SPREAD = 1e-9  # standard errors below are rounding errors
NOT_SIGNIFICANT = "NO"  # as in the paper's tables


class SeedTest(NamedTuple):
    """A test over seeds; whatever no valid number exists for is None.

    Two-sided: the agents differ. One-sided: the first agent is better.
    """

    name: str  # "Welch" or "paired"
    difference: float  # of mean success, first agent minus second
    t: float | None = None
    df: float | None = None
    p_two_sided: float | None = None
    p_one_sided: float | None = None
    low: float | None = None  # 95% interval of the difference
    high: float | None = None
    p_signs_two_sided: float | None = None  # exact test by changing signs, of paired runs only
    p_signs_one_sided: float | None = None
    seeds_for_power: int | None = None  # of each agent, for power .8 if the measured difference is the true one
    power_with_20_seeds: float | None = None
    paper: int | str | None = None  # entry of the paper's tables tab:once and tab:regen


def welch(first: Array, second: Array) -> SeedTest:
    """Welch's t-test of the means of independent runs, whose variances may differ (Welch 1947)."""
    assert first.ndim == second.ndim == 1, (first.shape, second.shape)
    difference = float(first.mean() - second.mean())
    if min(len(first), len(second)) < 2:
        return SeedTest("Welch", difference)
    v1, v2 = float(first.var(ddof=1)), float(second.var(ddof=1))
    e1, e2 = v1 / len(first), v2 / len(second)  # squared standard errors
    if math.sqrt(e1 + e2) < NO_SPREAD:
        return SeedTest("Welch", difference)
    # Degrees of freedom of Welch and Satterthwaite.
    df = (e1 + e2) ** 2 / (e1**2 / (len(first) - 1) + e2**2 / (len(second) - 1))
    test = _t_test("Welch", difference, math.sqrt(e1 + e2), df)

    def power(seeds: int) -> float:
        return welch_power(difference, v1, v2, seeds)

    return test._replace(
        seeds_for_power=seeds_needed(power),
        power_with_20_seeds=power(PAPER_SEEDS),
        paper=paper_entry(test, v1, v2),
    )


def paired(first: Array, second: Array) -> SeedTest:
    """The paired t-test, of runs that share their networks pair by pair, and the exact test by changing signs."""
    assert first.shape == second.shape == (len(first),), (first.shape, second.shape)
    differences = first - second
    difference, pairs = float(differences.mean()), len(differences)
    if pairs < 2:
        return SeedTest("paired", difference)
    one_sided, two_sided = sign_test(differences)
    test = SeedTest("paired", difference, p_signs_one_sided=one_sided, p_signs_two_sided=two_sided)
    sd = float(differences.std(ddof=1))
    if sd < NO_SPREAD:
        return test

    def power(seeds: int) -> float:
        return t_power(difference / sd * math.sqrt(seeds), seeds - 1)

    return _t_test("paired", difference, sd / math.sqrt(pairs), pairs - 1)._replace(
        p_signs_one_sided=one_sided,
        p_signs_two_sided=two_sided,
        seeds_for_power=seeds_needed(power),
        power_with_20_seeds=power(PAPER_SEEDS),
    )


def _t_test(name: str, difference: float, standard_error: float, df: float) -> SeedTest:
    t = difference / standard_error
    half = float(stats.t.isf(ALPHA / 2, df)) * standard_error
    return SeedTest(
        name,
        difference,
        t=t,
        df=df,
        p_two_sided=float(2 * stats.t.sf(abs(t), df)),
        p_one_sided=float(stats.t.sf(t, df)),
        low=difference - half,
        high=difference + half,
    )


def sign_test(differences: Array) -> tuple[float, float]:
    """One-sided and two-sided p: the share of sign assignments with a sum at least as large (Fisher 1935).

    If the agents were equal, every difference could as well have the other sign. All assignments are counted; with
    more than 20 pairs a random sample of them, in which the measured one is counted.
    """
    if len(differences) <= MAX_EXACT_PAIRS:
        sums = np.zeros(1)
        for each in differences:
            sums = np.concatenate([sums + each, sums - each])
    else:
        rng = np.random.default_rng(len(differences))
        signs = rng.choice([-1.0, 1.0], size=(RANDOM_SIGNS, len(differences)))
        sums = np.append(signs @ differences, differences.sum())
    measured, rounding = differences.sum(), 1e-12
    one_sided = np.mean(sums >= measured - rounding)
    two_sided = np.mean(np.abs(sums) >= abs(measured) - rounding)
    return float(one_sided), float(two_sided)


def t_power(noncentrality: float, df: float) -> float:
    """Power of the two-sided t-test: the share of noncentral t beyond the critical values."""
    critical, shift = float(stats.t.isf(ALPHA / 2, df)), abs(noncentrality)
    # The wrong side holds less than 1e-9 where the shift is large, and scipy then has no number for it.
    wrong_side = stats.nct.cdf(-critical, df, shift) if shift < 5.0 else 0.0
    return float(stats.nct.sf(critical, df, shift) + wrong_side)


def welch_power(difference: float, v1: float, v2: float, seeds: int) -> float:
    """Power of Welch's two-sided test with ``seeds`` runs of each agent, for variances ``v1`` and ``v2`` over seeds.

    The noncentral t with Welch's degrees of freedom at the true variances. With equal variances it is the exact power
    of Student's test; otherwise an approximation, since the test estimates its degrees of freedom.
    """
    df, standard_error = _equal_numbers(v1, v2, seeds)
    return t_power(difference / standard_error, df)


def _equal_numbers(v1: float, v2: float, seeds: int) -> tuple[float, float]:
    """Welch's degrees of freedom and the standard error, with ``seeds`` runs of each agent."""
    return (seeds - 1) * (v1 + v2) ** 2 / (v1**2 + v2**2), math.sqrt((v1 + v2) / seeds)


def seeds_needed(power: Callable[[int], float], wanted: float = POWER) -> int | None:
    """The smallest number of seeds, from 2 on, whose ``power`` is at least ``wanted``; None above 10,000."""
    numbers = range(2, MAX_SEEDS + 1)
    index = bisect_left(numbers, wanted, key=power)
    return numbers[index] if index < len(numbers) else None


def paper_entry(test: SeedTest, v1: float, v2: float) -> int | str | None:
    """Entry of the paper's tables: the minimum number of seeds, or NO where no advantage is significant.

    App. "Statistical Significance & Power Analyses": threshold .05, effect size equal to the measured difference, after
    Colas et al. (2018), who shift the central t and use the one-sided critical value. What the paper's footnote calls a
    power of 0.2 is their probability of a type-II error: literal power 0.2 would never need more seeds than
    a significant result already has, and the tables show such entries.
    """
    if test.p_one_sided is None or test.p_one_sided >= ALPHA:
        return NOT_SIGNIFICANT

    def power(seeds: int) -> float:
        df, standard_error = _equal_numbers(v1, v2, seeds)
        return float(stats.t.sf(stats.t.isf(ALPHA, df) - test.difference / standard_error, df))

    return seeds_needed(power)


class McNemar(NamedTuple):
    """Two networks on the same tasks: how many tasks only one of them solved."""

    only_first: int
    only_second: int
    p_two_sided: float


def mcnemar(first: Array, second: Array) -> McNemar:
    """McNemar's exact test: of the tasks that one network solved and the other did not, either has half (McNemar 1947).

    It says something about these two networks on other tasks, nothing about other training seeds.
    """
    assert first.shape == second.shape == (len(first),), (first.shape, second.shape)
    only_first, only_second = int((first & ~second).sum()), int((second & ~first).sum())
    decided = only_first + only_second
    p = float(stats.binomtest(only_first, decided).pvalue) if decided else 1.0
    return McNemar(only_first, only_second, p)


def seed_spread(values: Array) -> tuple[Array, Array, Array]:
    """Mean over the first axis, the seeds, and the ends of its 95% t-interval.

    Of two seeds, whose interval is 13 errors wide to each side and says nothing, the two values; of one seed NaN.
    """
    seeds, mean = len(values), np.asarray(values.mean(0))
    if seeds < 2:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    if seeds == 2:
        return mean, np.asarray(values.min(0)), np.asarray(values.max(0))
    half = float(stats.t.isf(ALPHA / 2, seeds - 1)) * values.std(0, ddof=1) / math.sqrt(seeds)
    return mean, np.asarray(mean - half), np.asarray(mean + half)


def iqm(success: Array) -> Array:
    """Interquartile mean over runs and sets (..., runs, sets), the mean of the middle half (Agarwal et al. 2021)."""
    values = success.reshape(*success.shape[:-2], -1)  # (..., runs * sets)
    return np.asarray(stats.trim_mean(values, 0.25, axis=-1))


def probability_of_improvement(first: Array, second: Array) -> Array:
    """Probability that a run of the first agent is better than one of the second, ties count half, mean over sets.

    Of success rates (..., runs, sets); the Mann-Whitney statistic over its maximum (Agarwal et al. 2021).
    """
    x, y = first[..., :, None, :], second[..., None, :, :]
    return np.asarray(((x > y) + 0.5 * (x == y)).mean((-3, -2, -1)))
