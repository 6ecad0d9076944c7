"""Counter-based random streams that numba kernels and plain Python share.

A stream is one ``uint64`` of state (SplitMix64, Steele et al. 2014), so the streams of a thousand environments are
one array, which is easy to save and to resume from. Every function takes the array and the index of the stream that it
advances.
"""

from collections.abc import Sequence
from numbers import Integral

import numpy as np

from skipper.runtime.jit import kernel
from skipper.types import Array

_GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@kernel
def mix64(value):
    """A bijection of 64-bit words in which every input bit flips about half of the output bits."""
    value = (value ^ (value >> np.uint64(30))) * _MIX_1
    value = (value ^ (value >> np.uint64(27))) * _MIX_2
    return value ^ (value >> np.uint64(31))


@kernel
def random_word(states, index):
    """The next 64 random bits of stream ``index``."""
    states[index] += _GOLDEN_GAMMA
    return mix64(states[index])


@kernel
def random_unit(states, index):
    """The next random float in [0, 1), with 53 random bits."""
    return np.float64(random_word(states, index) >> np.uint64(11)) * 2.0**-53


@kernel
def random_below(states, index, bound):
    """The next random integer in [0, bound), for bounds far below 2**32."""
    return np.int64(((random_word(states, index) >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


def stream_states(entropy: Sequence[int], count: int) -> Array:
    """``count`` initial states, (count,) uint64, determined by the numbers in ``entropy``."""
    return np.random.SeedSequence(list(entropy)).generate_state(count, np.uint64)


@kernel
def seed_states(seeds):
    """One initial state per seed, (B,) uint64; neighbouring seeds give unrelated streams."""
    states = np.empty(len(seeds), np.uint64)
    for index in range(len(seeds)):
        states[index] = mix64(seeds[index] + _GOLDEN_GAMMA)
    return states


def checked_seeds(seeds: Sequence[object]) -> Array:
    """(B,) uint64 seeds, after checking that they are whole numbers in range."""
    for seed in seeds:
        if not isinstance(seed, Integral) or not 0 <= int(seed) < 2**63:
            raise ValueError(f"a seed must be a whole number from 0 to 2**63 - 1, got {seed!r}")
    return np.array(seeds, np.uint64)
