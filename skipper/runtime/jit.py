"""The decorator of compiled functions, with caches that are never stale.

Numba recompiles a cached function when its own file changes, but not when a function that it calls from another file
changes. So all caches are dropped whenever any file with kernels has changed since they were written.
"""

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

_PACKAGE = Path(__file__).parents[1]


def kernel(function: Callable[..., Any]) -> Any:
    """Compile ``function`` at its first call and cache the result for later processes."""
    # Division by zero follows NumPy: raising an error would make loops with divisions three times slower.
    # The global interpreter lock is released, so that other threads can run.
    return numba.njit(function, cache=True, error_model="numpy", nogil=True)


def drop_stale_caches(package: Path) -> bool:
    """Delete the compiled functions of a package whose kernels changed; return whether that was needed."""
    sources = [path.read_bytes() for path in sorted(package.rglob("*.py"))]
    digest = hashlib.sha256(b"".join(source for source in sources if b"skipper.runtime.jit" in source)).hexdigest()[:16]
    stamp = package / "__pycache__" / f"kernels-{digest}.stamp"
    if stamp.exists():
        return False
    for pattern in ("__pycache__/*.nbi", "__pycache__/*.nbc", "__pycache__/kernels-*.stamp"):
        for old in package.rglob(pattern):
            old.unlink(missing_ok=True)
    stamp.parent.mkdir(exist_ok=True)
    stamp.touch()
    return True


with contextlib.suppress(OSError):  # a read-only package cannot have been edited either
    drop_stale_caches(_PACKAGE)
