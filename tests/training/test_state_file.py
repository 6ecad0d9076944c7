import os

import numpy as np
import pytest

from skipper.training.state_file import DamagedFileError, read_state, write_atomically, write_state

STATE = {
    "weights": {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "count": np.array(7.0, np.float32)},
    "flags": np.array([True, False]),
    "seeds": np.array([2**64 - 1], np.uint64),
    "empty": np.zeros((0, 4), np.uint8),
    "rng": {"state": 2**127, "names": ["a", "b"]},
    "nothing": {},
    "number": 0.1,
}


def same(one, two) -> bool:
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[name], two[name]) for name in one)
    if isinstance(one, np.ndarray):
        return one.dtype == two.dtype and one.shape == two.shape and (one == two).all()
    return one == two


def test_a_state_comes_back_as_it_was(tmp_path):
    write_state(tmp_path / "state", "test", STATE)
    assert same(read_state(tmp_path / "state", "test"), STATE)


def test_equal_states_are_equal_files(tmp_path):
    for name in ("one", "two"):
        write_state(tmp_path / name, "test", STATE)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_the_kind_is_part_of_the_file(tmp_path):
    write_state(tmp_path / "state", "test", STATE)
    with pytest.raises(DamagedFileError, match="holds 'test', not 'other'"):
        read_state(tmp_path / "state", "other")


def test_every_flipped_bit_of_a_small_file_is_noticed(tmp_path):
    path = tmp_path / "state"
    write_state(path, "test", {"a": np.arange(3, dtype=np.float32), "b": 1})
    good = path.read_bytes()
    for place in range(len(good)):
        for bit in (0, 3, 7):
            damaged = bytearray(good)
            damaged[place] ^= 1 << bit
            path.write_bytes(damaged)
            with pytest.raises(DamagedFileError) as refused:
                read_state(path, "test")
            assert "\n" not in str(refused.value)


def test_every_truncation_is_noticed(tmp_path):
    path = tmp_path / "state"
    write_state(path, "test", {"a": np.arange(3)})
    good = path.read_bytes()
    for length in range(len(good)):
        path.write_bytes(good[:length])
        with pytest.raises(DamagedFileError):
            read_state(path, "test")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DamagedFileError, match="does not exist"):
        read_state(tmp_path / "nowhere", "test")


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(tmp_path):
    path = tmp_path / "state"
    write_state(path, "test", {"a": 1})

    def fail(temporary) -> None:
        temporary.write_bytes(b"half")
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        write_atomically(path, fail)
    assert read_state(path, "test") == {"a": 1}
    assert os.listdir(tmp_path) == ["state"]
