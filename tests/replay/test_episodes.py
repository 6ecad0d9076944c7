import numpy as np
import pytest

from skipper.replay.episodes import EpisodeBuilder
from skipper.types import Transition


def transition(states, terminated, truncated) -> Transition:
    observation = np.array(states, np.uint8).reshape(-1, 1, 1, 1)
    ends = np.array(terminated), np.array(truncated)
    return Transition(observation, np.array(states), np.array(states) / 2, observation + 1, *ends)


def test_episodes_are_returned_as_they_end():
    builder = EpisodeBuilder(2, 5, (1, 1, 1))
    assert builder.append(transition([10, 20], [False, False], [False, False])) == []
    (ended,) = builder.append(transition([11, 21], [True, False], [False, False]))
    assert ended.observation.reshape(-1).tolist() == [10, 11, 12]
    assert ended.action.tolist() == [10, 11]
    assert ended.reward.tolist() == [5.0, 5.5]
    assert ended.terminated
    one, two = builder.append(transition([50, 22], [True, False], [False, True]))
    assert one.observation.reshape(-1).tolist() == [50, 51]
    assert two.observation.reshape(-1).tolist() == [20, 21, 22, 23]
    assert not two.terminated


def test_unfinished_episodes_are_saved():
    builder, other = EpisodeBuilder(1, 5, (1, 1, 1)), EpisodeBuilder(1, 5, (1, 1, 1))
    builder.append(transition([3], [False], [False]))
    other.load_state_dict(builder.state_dict())
    (ended,) = other.append(transition([4], [True], [False]))
    assert ended.observation.reshape(-1).tolist() == [3, 4, 5]


def test_longer_episodes_than_announced_are_refused():
    builder = EpisodeBuilder(1, 2, (1, 1, 1))
    builder.append(transition([0], [False], [False]))
    builder.append(transition([1], [False], [False]))
    with pytest.raises(ValueError, match="longer than the 2 steps"):
        builder.append(transition([2], [False], [False]))
