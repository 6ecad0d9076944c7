"""Hashes of observations."""

import numpy as np

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
