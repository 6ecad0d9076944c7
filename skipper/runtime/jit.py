"""The decorator of compiled functions, and a cache of them that cannot be stale.

Numba recompiles a cached function when its own file changes, but not when a function that it calls from another file
does: after an edit, old behaviour could live on unseen. So all caches are dropped whenever any file with kernels has
changed since they were made.
"""

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

_PACKAGE = Path(__file__).parents[1]


def kernel(function: Callable[..., Any]) -> Any:
    """Compile ``function`` at its first call, and keep the result for later processes."""
    # As in NumPy, dividing by zero is no error: where it could be one, loops with divisions take three times as long.
    # And other threads may go on meanwhile.
    return numba.njit(function, cache=True, error_model="numpy", nogil=True)


def drop_stale_caches(package: Path) -> bool:
    """Delete the compiled functions of a package whose kernels changed; True where that was needed."""
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


with contextlib.suppress(OSError):  # a package that cannot be written cannot have been edited either
    drop_stale_caches(_PACKAGE)
