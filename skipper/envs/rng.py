"""Counter-based random streams that numba kernels and plain Python share.

A stream is one ``uint64`` of state (SplitMix64, Steele et al. 2014), so a thousand environments keep a
thousand independent streams in one array, save them as one array, and resume from it. Every function
takes the array and the index of the stream that it advances.
"""

from collections.abc import Sequence

import numba
import numpy as np

from skipper.types import Array

_GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@numba.njit(cache=True, inline="always")
def mix64(value):
    """A bijection of 64-bit words in which every input bit flips about half of the output bits."""
    value = (value ^ (value >> np.uint64(30))) * _MIX_1
    value = (value ^ (value >> np.uint64(27))) * _MIX_2
    return value ^ (value >> np.uint64(31))


@numba.njit(cache=True)
def random_word(states, index):
    """The next 64 random bits of stream ``index``."""
    states[index] += _GOLDEN_GAMMA
    return mix64(states[index])


@numba.njit(cache=True)
def random_unit(states, index):
    """The next random float in [0, 1), 53 bits of it."""
    return np.float64(random_word(states, index) >> np.uint64(11)) * 2.0**-53


@numba.njit(cache=True)
def random_below(states, index, bound):
    """The next random integer in [0, bound), for bounds far below 2**32."""
    return np.int64(((random_word(states, index) >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


def stream_states(entropy: Sequence[int], count: int) -> Array:
    """``count`` start states, (count,) uint64, decided by the numbers in ``entropy`` alone."""
    return np.random.SeedSequence(list(entropy)).generate_state(count, np.uint64)


@numba.njit(cache=True)
def seed_states(seeds):
    """One start state per seed (B,) uint64; neighbouring seeds give unrelated streams."""
    states = np.empty(len(seeds), np.uint64)
    for index in range(len(seeds)):
        states[index] = mix64(seeds[index] + _GOLDEN_GAMMA)
    return states
