"""Making good use of the processor: threads, and memory that is not given back after every operation."""

import ctypes
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import scipy.linalg.cython_blas  # noqa: F401  # so that it is found among the libraries of this process
import torch
from threadpoolctl import ThreadpoolController

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of settings in glibc's malloc.h
_MEGABYTE = 2**20
PARTS = 4  # of work for each thread: not all are equally fast


def configure_threads(threads: int) -> None:
    """Let networks use ``threads`` threads, NumPy none of its own, and this process keep the memory that it frees.

    Networks allocate and free the same megabytes at every step. By default glibc returns them to the system each time,
    which then clears them anew: up to a third of the time of small convolutions. Elsewhere only threads are set.
    """
    _product_libraries().limit(limits=1)
    torch.set_num_threads(threads)  # after that: on some systems the two share one setting
    if sys.platform == "linux":
        malloc_settings = getattr(ctypes.CDLL(None), "mallopt", None)
        if malloc_settings is not None:
            malloc_settings(_MMAP_THRESHOLD, 32 * _MEGABYTE)
            malloc_settings(_TRIM_THRESHOLD, 512 * _MEGABYTE)


def shared(work: Callable[[slice], object], rows: int, block: int) -> None:
    """Do ``work`` on all of so many rows, by as many threads as networks may use.

    For compiled functions, which let other threads run meanwhile. Threads get whole blocks of so many rows, so what
    comes out does not depend on their number.
    """
    threads, blocks = torch.get_num_threads(), -(-rows // block)
    with _products_alone():
        if min(threads, blocks) <= 1:
            work(slice(0, rows))
            return
        parts = min(PARTS * threads, blocks)
        ends = [min(blocks * part // parts * block, rows) for part in range(parts + 1)]
        list(_pool(threads).map(work, map(slice, ends, ends[1:])))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="skipper")


def _products_alone() -> AbstractContextManager[object]:
    """In it, matrix products of compiled functions have no threads: these would stand in the way of ours."""
    libraries = _product_libraries()
    if all(library.num_threads == 1 for library in libraries.lib_controllers):
        return nullcontext()  # as after configure_threads; to set it takes longer than to see it
    return libraries.limit(limits=1)


if hasattr(
    os, "register_at_fork"
):  # a copy of the pool would have no threads, and work given to it would wait for ever
    os.register_at_fork(after_in_child=_pool.cache_clear)


@cache
def _product_libraries() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def peak_memory_mb() -> float:
    """The most memory that this process ever held, in MB."""
    import resource  # not on every system

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1e6 if sys.platform == "darwin" else 1e3)  # macOS counts bytes, Linux kilobytes
