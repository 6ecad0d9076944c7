"""Threads, and memory that stays in the process between operations."""

import ctypes
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import scipy.linalg.cython_blas  # noqa: F401  # loads the library that threadpoolctl must find
import torch
from threadpoolctl import ThreadpoolController

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of settings in glibc's malloc.h
_MEGABYTE = 2**20
PARTS = 4  # slices per thread, since not all take equally long


def configure_threads(threads: int) -> None:
    """Give networks ``threads`` threads and NumPy one, and keep freed memory in this process.

    Networks allocate and free the same megabytes at every step. By default glibc returns them to the system, which
    clears them each time: up to a third of the time of small convolutions. On other systems only threads are set.
    """
    _product_libraries().limit(limits=1)
    torch.set_num_threads(threads)  # after that: on some systems the two share one setting
    if sys.platform == "linux":
        malloc_settings = getattr(ctypes.CDLL(None), "mallopt", None)
        if malloc_settings is not None:
            malloc_settings(_MMAP_THRESHOLD, 32 * _MEGABYTE)
            malloc_settings(_TRIM_THRESHOLD, 512 * _MEGABYTE)


def run_parallel(work: Callable[[slice], object], rows: int, block: int) -> None:
    """Run ``work`` on slices of ``rows`` rows, in as many threads as networks may use.

    For compiled functions, which release the interpreter lock. Each slice holds whole blocks of ``block`` rows, so the
    result does not depend on the number of threads.
    """
    threads, blocks = torch.get_num_threads(), -(-rows // block)
    with _single_threaded_products():
        if min(threads, blocks) <= 1:
            work(slice(0, rows))
            return
        parts = min(PARTS * threads, blocks)
        bounds = [min(blocks * part // parts * block, rows) for part in range(parts + 1)]
        list(_pool(threads).map(work, map(slice, bounds, bounds[1:])))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="skipper")


def _single_threaded_products() -> AbstractContextManager[object]:
    """A context in which matrix products of compiled functions use one thread each, not competing with ours."""
    libraries = _product_libraries()
    if all(library.num_threads == 1 for library in libraries.lib_controllers):
        return nullcontext()  # as after configure_threads; checking is faster than setting
    return libraries.limit(limits=1)


# A forked copy of the pool has no threads: its work would never finish.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)


@cache
def _product_libraries() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def peak_memory_mb() -> float:
    """Peak memory of this process, in MB."""
    import resource  # not on every system

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1e6 if sys.platform == "darwin" else 1e3)  # macOS counts bytes, Linux kilobytes
