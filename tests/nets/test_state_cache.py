import numpy as np
import torch

from skipper.nets import frozen
from skipper.nets.frozen import DescriptionCache
from skipper.nets.frozen_encoder import PartialStateCache

STATES = torch.arange(9, dtype=torch.uint8).reshape(9, 1, 1, 1).expand(9, 2, 2, 1).contiguous()


class Encoder:
    """The state's number twice; notes which states it is given."""

    def __init__(self) -> None:
        self.given: list[list[int]] = []

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        numbers = states[:, 0, 0, 0]
        self.given.append(numbers.tolist())
        return numbers[:, None].float().expand(-1, 2)

    def describe(self, states: np.ndarray) -> np.ndarray:
        return self(torch.from_numpy(states))[:, 0].long().numpy()


def test_states_are_encoded_once_and_in_one_batch():
    cache, encode = PartialStateCache(2, capacity=10), Encoder()
    for rows in ([3, 1, 3], [1, 2, 3, 4], [4, 3]):
        assert cache.get(STATES[rows], encode)[:, 1].tolist() == rows
    assert encode.given == [[3, 1], [2, 4]] or encode.given == [[1, 3], [2, 4]]
    cache.clear()
    cache.get(STATES[[3]], encode)
    assert encode.given[-1] == [3]


def test_a_full_cache_begins_again_and_what_never_fits_is_not_cached():
    cache, encode = PartialStateCache(2, capacity=4), Encoder()
    cache.get(STATES[:3], encode)
    assert cache.get(STATES[[0, 5, 6]], encode)[:, 0].tolist() == [0, 5, 6]
    assert encode.given[-1] == [0, 5, 6]  # all of them anew
    assert cache.get(STATES, encode)[:, 0].tolist() == list(range(9))
    assert cache.get(STATES[[0]], encode)[:, 0].tolist() == [0]
    assert encode.given[-2:] == [list(range(9)), [0]]


def test_saved_states_are_not_encoded_again():
    cache, encode = PartialStateCache(2, capacity=10), Encoder()
    cache.get(STATES[[7, 2]], encode)
    saved = cache.state_dict()
    saved["partial"] += 1.0  # to distinguish it from a new encoding
    again = PartialStateCache(2, capacity=10)
    again.load_state_dict(saved)
    assert again.get(STATES[[2, 5]], encode)[:, 0].tolist() == [3, 5]


def test_descriptions_are_cached_saved_and_dropped_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(frozen, "DESCRIPTIONS", 3)
    cache, encode, states = DescriptionCache(), Encoder(), STATES.numpy()
    for rows in ([0, 1], [1, 1, 0], [2, 3]):
        assert cache.get(states[rows], encode.describe).tolist() == rows
    assert encode.given == [[0, 1], [2, 3]]
    again = DescriptionCache()
    again.load_state_dict(cache.state_dict())
    for one in (cache, again):
        assert one.get(states[[0, 4]], encode.describe).tolist() == [0, 4]  # more than three were cached
        assert encode.given[-1] == [0, 4]
        assert one.get(states[[4]], encode.describe).dtype == np.int64
