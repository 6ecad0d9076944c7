import shutil
import subprocess
import sys
from pathlib import Path

from skipper.runtime.jit import drop_stale_caches

PACKAGE = Path(__file__).parents[2] / "skipper"


def test_caches_are_dropped_when_a_kernel_changes_and_only_then(tmp_path):
    package = tmp_path / "package"
    (package / "room" / "__pycache__").mkdir(parents=True)
    source, other = package / "room" / "module.py", package / "other.py"
    source.write_text("from skipper.runtime.jit import kernel")
    other.write_text("pass")
    assert drop_stale_caches(package)
    cached = package / "room" / "__pycache__" / "module.nbi"
    cached.touch()
    other.write_text("changed, but without kernels")
    assert not drop_stale_caches(package)
    assert cached.exists()
    source.write_text("from skipper.runtime.jit import kernel  # changed")
    assert drop_stale_caches(package)
    assert not cached.exists()
    assert not drop_stale_caches(package)


def test_a_change_in_one_file_reaches_kernels_of_another(tmp_path):
    """The very case that numba's own cache misses: an edited ``slipped`` must reach the vector environment."""
    shutil.copytree(PACKAGE, tmp_path / "skipper", ignore=shutil.ignore_patterns("__pycache__"))
    program = (
        "import numpy as np; from skipper.envs.lava.vector_env import LavaVectorEnv; envs = LavaVectorEnv(1);"
        "envs.reset(seed=0); print((envs.step(np.array([0]))[0][0, :, :, 0] == 10).argmax())"
    )

    def place_after_a_step() -> str:
        run = [sys.executable, "-c", program]
        return subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()

    before = place_after_a_step()
    lava = tmp_path / "skipper" / "envs" / "lava" / "layout.py"
    text = lava.read_text()
    lava.write_text(text.replace("    return action\n", "    return action + 2\n"))
    assert lava.read_text() != text
    assert place_after_a_step() != before  # west instead of east
