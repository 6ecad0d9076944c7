"""Five hundred damaged, swapped and malicious files: each is refused in one line, and none is executed."""

import pytest

import skipper
from skipper.training.run import train
from tests.soak.hostile import NAMES, SHORT, attack, fault_of, make_runs

FILES = 500


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return make_runs(tmp_path_factory.mktemp("runs"))


def test_hostile_files_are_refused(runs, tmp_path):
    faults = list(attack(runs, tmp_path, FILES, seed=0))
    assert len(faults) == FILES
    assert not any(faults), [fault for fault in faults if fault]


def test_undamaged_runs_are_accepted_and_that_would_be_reported(runs):
    for run in runs:
        skipper.load(run)
    assert train(SHORT, runs[0])
    assert {fault_of(runs[0], name) for name in NAMES} == {"accepted"}
