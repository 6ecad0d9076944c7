"""Several small numbers as one: digits whose places have different bases, the first digit counting least."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

MOST = 2**62 - 1  # numbers that can be told apart


def join(digits: Array, sizes: Sequence[int]) -> Array:
    """(..., F) digits, each below its entry of ``sizes``, to numbers (...)."""
    numbers: Array = digits.astype(np.int64) @ place_values(sizes)
    return numbers


def split(numbers: Array, sizes: Sequence[int]) -> Array:
    """(...) numbers to their digits (..., F)."""
    digits: Array = numbers[..., None] // place_values(sizes) % np.array(sizes)
    return digits


def place_values(sizes: Sequence[int]) -> Array:
    """(F,) what one of each digit counts."""
    if prod(sizes) > MOST:
        raise ValueError(f"the states of a scene need numbers below 2**62; its parts have {list(sizes)} values")
    return np.cumprod([1, *sizes[:-1]], dtype=np.int64)


def most_likely(logits: Array, sizes: Sequence[int]) -> Array:
    """(..., sum of sizes) logits of all digits to the numbers (...) of the most likely ones."""
    if len(sizes) == 1:
        return logits.argmax(-1)
    parts = np.split(logits, np.cumsum(sizes[:-1]), axis=-1)
    return join(np.stack([part.argmax(-1) for part in parts], -1), sizes)
