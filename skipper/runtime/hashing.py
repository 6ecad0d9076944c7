"""Hashes of observations."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skipper.runtime.jit import kernel


@kernel
def content_hashes(rows):
    """(T,) int64 FNV-1a hashes of the bytes of ``rows`` (T, bytes).

    Among a million different rows, the probability of any collision is below 1e-7.
    """
    hashes = np.empty(len(rows), np.int64)
    for row in range(len(rows)):
        value = np.uint64(0xCBF29CE484222325)
        for byte in rows[row]:
            value = (value ^ np.uint64(byte)) * np.uint64(0x100000001B3)
        hashes[row] = np.int64(value)
    return hashes


def content_keys(observations: NDArray[Any]) -> NDArray[Any]:
    """(...,) int64 keys of observations (..., W, H, C), equal where their contents are."""
    shape = observations.shape
    keys: NDArray[Any] = content_hashes(observations.reshape(-1, int(np.prod(shape[-3:])))).reshape(shape[:-3])
    return keys
