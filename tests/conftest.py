"""Threads and order of the tests, and fixtures of several files."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Test processes and the processes that they start share the cores. Threads that spin while they wait for each other
# then keep others from working: under load, a run with two threads takes five times as long as with passive waiting.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Slow files first, so that no worker begins one of them while the others are already done.
SLOW = (
    "experiments/test_ray_pool.py",
    "test_resume.py",
    "test_learning_skipper.py",
    "agents/skipper/test_update_process.py",
    "test_learning.py",
    "test_cli.py",
    "viewer/test_page.py",
    "experiments/test_execute.py",
    "training/test_run.py",
    "test_readme.py",
    "test_wheel.py",
)


def pytest_collection_modifyitems(items):
    rank = {Path(__file__).parent / name: number for number, name in enumerate(SLOW)}
    items.sort(key=lambda item: rank.get(item.path, len(SLOW)))


@pytest.fixture(autouse=True)
def one_thread_again():
    """Do not let later tests run with the threads that a test has set."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture
def short_benchmarks(monkeypatch):
    """Benchmarks that measure with less experience and fewer scenes."""
    monkeypatch.setattr("skipper.benchmarks.update.STEPS", 400)
    monkeypatch.setattr("skipper.benchmarks.train.WARM_UP", 400)
    monkeypatch.setattr("skipper.benchmarks.plan.SCENES", 128)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium for pages; its tests are skipped where there is none."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("there is no Chromium; scripts/browser.sh installs Debian's package")
    from playwright.sync_api import sync_playwright

    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=quiet)
        yield opened
        opened.close()
