"""Threads and order of the tests."""

import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # test processes share the cores, and so do the processes that they start

# Slow files first, so that no worker begins one of them while the others are already done.
SLOW = (
    "test_resume.py",
    "test_learning_skipper.py",
    "agents/skipper/test_update_process.py",
    "test_learning.py",
    "test_cli.py",
    "viewer/test_page.py",
    "training/test_run.py",
)


def pytest_collection_modifyitems(items):
    rank = {Path(__file__).parent / name: number for number, name in enumerate(SLOW)}
    items.sort(key=lambda item: rank.get(item.path, len(SLOW)))
