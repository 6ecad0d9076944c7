import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from skipper.envs.rng import checked_seeds, random_below, random_unit, random_word, seed_states, stream_states


def test_first_words_are_those_of_splitmix64():
    # Reference outputs of SplitMix64 for the seed 1234567, as published with the algorithm.
    states = np.array([1234567], np.uint64)
    words = [int(random_word(states, 0)) for _ in range(3)]
    assert words == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_streams_advance_alone():
    states = np.array([1, 2], np.uint64)
    random_word(states, 1)
    assert states[0] == 1
    assert states[1] != 2


def test_units_and_bounded_integers_are_uniform():
    states = seed_states(np.array([3], np.uint64))
    assert kstest([random_unit(states, 0) for _ in range(20_000)], "uniform").pvalue > 1e-3
    counts = np.bincount([random_below(states, 0, 7) for _ in range(20_000)], minlength=7)
    assert len(counts) == 7
    assert chisquare(counts).pvalue > 1e-3


def test_units_are_the_upper_bits_of_a_word():
    one, two = np.array([5], np.uint64), np.array([5], np.uint64)
    assert random_unit(one, 0) == (int(random_word(two, 0)) >> 11) / 2**53


@pytest.mark.parametrize("seed", [-1, 2**63, 1.0, "1", None])
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(ValueError, match="whole number from 0"):
        checked_seeds([seed])


def test_numpy_integers_are_seeds():
    assert checked_seeds([np.int32(3), 4]).tolist() == [3, 4]


def test_neighbouring_seeds_give_unrelated_streams():
    states = seed_states(np.arange(5000, dtype=np.uint64))
    firsts = np.array([random_unit(states, index) for index in range(5000)])
    assert kstest(firsts, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(firsts[1:], firsts[:-1])[0, 1]) < 0.05


def test_stream_states_depend_on_all_their_entropy():
    assert (stream_states([1, 2], 4) == stream_states([1, 2], 4)).all()
    assert not set(stream_states([1, 2], 4).tolist()) & set(stream_states([2, 1], 4).tolist())
