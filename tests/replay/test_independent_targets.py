"""Windows and targets that are chosen without looking at what happens in the window."""

from collections.abc import Iterator

import numpy as np
import pytest

from skipper.replay.all_pairs import AllPairsSampler
from skipper.replay.episodes import Episode
from skipper.replay.store import EpisodeStore
from tests.replay.numbered_episodes import episode, make, number, walk


def independent_pairs(store: EpisodeStore, sampler: AllPairsSampler, draws: int = 100) -> Iterator[tuple]:
    """For each window the numbers of its states in order, and its pairs (step, target)."""
    rng = np.random.default_rng(0)
    for _ in range(draws):
        pairs = sampler.sample(rng, independent=1.0)
        state = number(pairs.observation)
        for row in range(sampler.config.pair_episodes):
            of_row = np.flatnonzero(pairs.episode[pairs.source] == row)
            source, after = state[pairs.source[of_row]].tolist(), state[pairs.next[of_row]].tolist()
            yield list(dict.fromkeys(source + after)), list(zip(source, state[pairs.target[of_row]], strict=True))


def test_what_only_its_own_episode_reaches_later_is_no_target():
    """Nobody else was in any of the states: targets lie in the past."""
    store, sampler = make(capacity=400, pair_episodes=4, pair_transitions=5, pair_targets=3, pair_endings=0.5)
    for index in range(4):
        store.add(episode(100 * index, 20), task=1)
    pairs = [pair for _, of_window in independent_pairs(store, sampler) for pair in of_window]
    assert len(pairs) > 1000
    assert all(target < source for source, target in pairs)
    assert all(target // 100 == source // 100 for source, target in pairs)


def test_targets_are_those_of_another_episode_through_the_same_state():
    """Two ways meet in state 50 only, and each is the other's guide there."""
    store, sampler = make(capacity=400, pair_episodes=4, pair_transitions=1, pair_targets=2)
    ways = [[*range(10, 16), 50, *range(16, 26)], [*range(30, 34), 50, *range(34, 44)]]
    for way in ways:
        store.add(walk(np.array(way)), task=1)
    foreign, own_past = set(), 0
    for states, pairs in independent_pairs(store, sampler, 400):
        for source, target in pairs:
            source_or_next = states[1] if source == 50 else source
            own, other = ways if source_or_next in ways[0] else ways[::-1]
            if source == 50 and target in other:
                foreign.add(int(target))
            else:
                assert own.index(target) < own.index(source)
                own_past += 1
    assert foreign == {*ways[0], *ways[1]} - {50}
    assert own_past > 500


def test_windows_at_the_guides_end_need_not_end_with_their_own_episode():
    """The short episode ends two steps after 50, the long one much later."""
    store, sampler = make(capacity=400, pair_episodes=4, pair_transitions=3, pair_targets=2, pair_endings=1.0)
    store.add(walk(np.array([50, 1, 2])), task=1)
    store.add(walk(np.array([50, *range(60, 80)])), task=1)
    windows = [(states, pairs) for states, pairs in independent_pairs(store, sampler, 200) if states[:1] == [50]]
    assert windows
    for states, pairs in windows:
        assert states == [50, 60, 61, 62]
        assert (50, 2) in pairs  # the end of the guide
        assert not {60, 61, 62} & {target for source, target in pairs if source == 50}


RIGHT, FORWARD = 1, 0.8


def stochastic_walk(rng: np.random.Generator) -> Episode:
    """From the middle of a chain of seven states to one of its ends; a move goes the other way with chance 0.2."""
    states, actions = [3], []
    while 0 < states[-1] < 6:
        actions.append(int(rng.integers(2)))
        forward = rng.random() < FORWARD
        states.append(states[-1] + (1 if (actions[-1] == RIGHT) == forward else -1))
    return walk(np.array(states))._replace(action=np.array(actions))


@pytest.fixture(scope="module")
def chain() -> tuple[EpisodeStore, AllPairsSampler]:
    store, sampler = make(capacity=60_000, pair_episodes=64, pair_transitions=2, pair_targets=1, pair_endings=0.5)
    rng = np.random.default_rng(0)
    for _ in range(4_000):
        store.add(stochastic_walk(rng), task=1)
    return store, sampler


def chances(sampler: AllPairsSampler, independent: float) -> dict[str, float]:
    """How often moves to the right reach a target next to them, and how often they end the episode, in all pairs."""
    rng, columns = np.random.default_rng(1), []
    for _ in range(150):
        pairs = sampler.sample(rng, independent)
        state = number(pairs.observation)
        columns.append([state[pairs.source], state[pairs.target], pairs.action, pairs.reached, pairs.terminated])
    source, target, action, reached, terminated = map(np.concatenate, zip(*columns, strict=True))
    right = action == RIGHT
    return {
        "forward": reached[right & (target == source + 1)].mean(),
        "back": reached[right & (target == source - 1)].mean(),
        "death": terminated[right & (source == 1)].mean(),
        "goal": terminated[right & (source == 5)].mean(),
    }


def test_independent_targets_are_reached_as_often_as_they_are_in_truth(chain):
    _, sampler = chain
    found = chances(sampler, independent=1.0)
    expected = {"forward": FORWARD, "back": 1 - FORWARD, "death": 1 - FORWARD, "goal": FORWARD}
    for name, truth in expected.items():
        assert found[name] == pytest.approx(truth, abs=0.04), name


def test_targets_that_the_episode_reached_make_moves_look_lucky(chain):
    """Which is why they must not be taken where moves slip."""
    _, sampler = chain
    found = chances(sampler, independent=0.0)
    assert found["forward"] > FORWARD + 0.06
    assert found["back"] > 1 - FORWARD + 0.1
    assert found["death"] > 1 - FORWARD + 0.1  # windows at the ends of episodes
