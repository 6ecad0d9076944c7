"""All pairs of windows and targets, against plain loops over a list of episodes."""

from collections.abc import Iterator

import numpy as np
import pytest

from skipper.config import HindsightConfig
from skipper.replay.all_pairs import AllPairsSampler, Pairs
from skipper.replay.episodes import Episode
from skipper.replay.store import NO_TASK, TRIES, EpisodeStore


def episode(first: int, steps: int, terminated: bool = True) -> Episode:
    """States are numbered, so that each can be recognised: state n, action n % 7, reward n / 10."""
    return walk(np.arange(first, first + steps + 1), terminated)


def walk(numbers: np.ndarray, terminated: bool = True) -> Episode:
    """An episode over numbered states, which may repeat."""
    observation = np.stack([numbers // 256, numbers % 256], -1).astype(np.uint8).reshape(-1, 1, 1, 2)
    return Episode(observation, numbers[:-1] % 7, numbers[:-1] / 10, terminated)


def number(observation: np.ndarray) -> np.ndarray:
    return observation.reshape(-1, 2)[:, 0].astype(int) * 256 + observation.reshape(-1, 2)[:, 1]


def make(**fields) -> tuple[EpisodeStore, AllPairsSampler]:
    config = HindsightConfig(**fields)
    store = EpisodeStore(config.capacity, (1, 1, 2))
    return store, AllPairsSampler(store, config, 0.9)


@pytest.mark.parametrize(("endings", "least", "most"), [(1.0, 1.0, 1.0), (0.5, 0.45, 0.62), (0.0, 0.0, 0.12)])
def test_a_share_of_the_windows_ends_with_the_episode(endings, least, most):
    store, sampler = make(capacity=400, pair_episodes=4, pair_transitions=5, pair_endings=endings)
    rng = np.random.default_rng(0)
    for index in range(4):
        store.add(episode(100 * index, 50))
    ends = []
    for _ in range(100):
        pairs = sampler.sample(rng)
        source = number(pairs.observation)[pairs.source]
        for row in range(4):
            of_window = source[pairs.episode[pairs.source] == row]
            ends.append(of_window.max() % 100 == 49)
    assert least <= np.mean(ends) <= most


def test_an_episode_with_two_different_states_is_needed():
    store, sampler = make(capacity=20)
    with pytest.raises(ValueError, match="no episodes yet"):
        sampler.sample(np.random.default_rng(0))
    store.add(walk(np.full(5, 3)))
    assert not sampler.ready()
    store.add(walk(np.array([3, 3, 4])))
    assert sampler.ready()


def pairs_of(episodes: list[tuple[int, Episode]], **fields) -> Pairs:
    """All pairs of many draws from a store that holds ``episodes``, in numbers instead of indices."""
    (store, sampler), rng = make(capacity=1000, **fields), np.random.default_rng(0)
    for task, each in episodes:
        store.add(each, task)
    drawn = []
    for _ in range(200):
        pairs = sampler.sample(rng)
        states = number(pairs.observation)
        assert len(set(zip(states.tolist(), pairs.episode.tolist(), strict=True))) == len(states)  # each state once
        drawn.append(pairs._replace(**{name: states[getattr(pairs, name)] for name in ("source", "next", "target")}))
    joined = (np.concatenate([getattr(pairs, name) for pairs in drawn]) for name in Pairs._fields)
    return Pairs(*joined)


def test_pairs_cross_a_window_of_transitions_with_targets_of_their_episode():
    episodes = [(1, episode(100, 8)), (2, episode(200, 40, terminated=False)), (3, episode(300, 1))]
    pairs = pairs_of(episodes, pair_episodes=4, pair_transitions=5, pair_targets=3)
    assert (pairs.next == pairs.source + 1).all()
    assert (pairs.source != pairs.target).all()
    assert (pairs.source // 100 == pairs.target // 100).all()
    assert (pairs.action == pairs.source % 7).all()
    np.testing.assert_allclose(pairs.reward, pairs.source / 10, rtol=1e-6)
    assert (pairs.reached == (pairs.next == pairs.target)).all()
    assert (pairs.terminated == np.isin(pairs.next, (108, 301))).all()
    later = pairs.target > pairs.source
    assert (pairs.path_steps[later] == (pairs.target - pairs.source)[later]).all()
    assert np.isinf(pairs.path_steps[~later]).all()
    ways = zip(pairs.source[later].tolist(), pairs.target[later].tolist(), strict=True)
    rewards = [sum(0.9 ** (on - begin) * on / 10 for on in range(begin, end)) for begin, end in ways]
    np.testing.assert_allclose(pairs.path_reward[later], rewards, rtol=1e-5)
    assert (pairs.path_reward[~later] == -np.inf).all()
    found = set(zip(pairs.source.tolist(), pairs.target.tolist(), strict=True))
    assert found >= {(s, t) for s in range(100, 108) for t in range(100, 109) if s != t}


def test_few_states_make_many_pairs():
    store, sampler = make(capacity=100, pair_episodes=4, pair_transitions=6, pair_targets=4)
    store.add(episode(0, 60))
    pairs = sampler.sample(np.random.default_rng(0))
    assert len(pairs.observation) <= 4 * (7 + 4)
    assert len(pairs.source) > 3.5 * len(pairs.observation)


def test_steps_count_to_the_first_of_equal_states_and_a_loop_is_no_target():
    loop = walk(np.array([0, 1, 2, 1, 0, 3]))._replace(action=np.arange(5))
    pairs = pairs_of([(1, loop)], pair_episodes=1, pair_transitions=5, pair_targets=1)
    pairs_columns = (pairs.source, pairs.action, pairs.target, pairs.path_steps)
    first = {(s, a, t): steps for s, a, t, steps in zip(*pairs_columns, strict=True)}
    assert first[0, 0, 1] == 1.0
    assert first[2, 2, 0] == 2.0
    assert first[0, 0, 3] == 5.0
    assert first[0, 4, 3] == 1.0
    assert np.isinf(first[0, 4, 2])
    assert not any(s == t for s, _, t in first)


def test_some_targets_come_from_other_episodes_of_the_same_task():
    episodes = [(1, episode(100, 20)), (1, episode(150, 20)), (2, episode(200, 20)), (NO_TASK, episode(300, 20))]
    pairs = pairs_of(episodes, pair_episodes=3, pair_transitions=3, pair_targets=4, other_episodes=0.5)
    assert (pairs.source // 100 == pairs.target // 100).all()
    foreign = (pairs.source // 50) != (pairs.target // 50)
    assert 0.1 < foreign[pairs.source // 100 == 1].mean() < 0.5
    assert np.isinf(pairs.path_steps[foreign]).all()


def naive_pairs(store: EpisodeStore, config: HindsightConfig, rng: np.random.Generator) -> Iterator[tuple]:
    """The columns of all pairs, with numbers of states in place of indices, from the same random draws."""
    stored = list(store.numbers())
    states = {each: number(store.observations(store.first[each] + np.arange(store.states[each]))) for each in stored}
    owner = {slot: each for each in stored for slot in range(store.first[each], store.first[each] + len(states[each]))}
    E, G, used = config.pair_episodes, config.pair_targets, store.state_dict()["counters"]["used_slots"]  # noqa: N806
    chosen: list[int] = []
    while len(chosen) < E:
        chosen += [owner[slot] for slot in rng.integers(used, size=2 * E).tolist() if slot in owner]
    chosen = chosen[:E]
    lengths = np.array([len(states[each]) for each in chosen])
    steps = np.minimum(config.pair_transitions, lengths - 1)
    at_end = rng.random(E) < config.pair_endings
    begin = np.where(at_end, lengths - 1 - steps, rng.integers(lengths - steps))
    anywhere = rng.integers(lengths[:, None], size=(E, G))
    targets = [[int(states[each][index]) for index in anywhere[row]] for row, each in enumerate(chosen)]
    replaced = rng.random((E, G)) < config.other_episodes
    for row, column in np.argwhere(replaced):
        own = chosen[row]
        if store.task[own] == NO_TASK:
            continue
        tried = [stored[int(unit * len(stored))] for unit in rng.random(TRIES)]
        others = [each for each in tried if each != own and store.task[each] == store.task[own]]
        if others:
            targets[row][column] = int(states[others[0]][rng.integers(len(states[others[0]]))])
    for row, own in enumerate(chosen):
        path, first = states[own].tolist(), store.first[own]
        window = path[begin[row] : begin[row] + steps[row] + 1]
        for step in range(begin[row], begin[row] + steps[row]):
            for target in dict.fromkeys(window + targets[row]):
                if target == path[step]:
                    continue
                reached = [later for later in range(step + 1, len(path)) if path[later] == target]
                rewards = store.reward[first + step : first + reached[0]] if reached else []
                yield (
                    path[step],
                    path[step + 1],
                    target,
                    int(store.action[first + step]),
                    bool(store.terminated[first + step]),
                    path[step + 1] == target,
                    float(reached[0] - step) if reached else np.inf,
                    float(sum(0.9**k * reward for k, reward in enumerate(rewards))) if reached else -np.inf,
                )


def test_equal_to_the_naive_twin():
    store, sampler = make(
        capacity=120, pair_episodes=3, pair_transitions=4, pair_targets=3, pair_endings=0.4, other_episodes=0.4
    )
    rng = np.random.default_rng(0)
    for turn in range(60):
        steps, task = int(rng.integers(1, 25)), int(rng.integers(-1, 3))
        base = 100 * (task + 1)
        store.add(walk(base + rng.integers(8, size=steps + 1), terminated=bool(turn % 2)), task)
        pairs = sampler.sample(np.random.default_rng(turn))
        state = number(pairs.observation)
        columns = (pairs.action, pairs.terminated, pairs.reached, pairs.path_steps, pairs.path_reward)
        found = list(zip(state[pairs.source], state[pairs.next], state[pairs.target], *columns, strict=True))
        expected = list(naive_pairs(store, sampler.config, np.random.default_rng(turn)))
        assert [each[:-1] for each in found] == [each[:-1] for each in expected]
        np.testing.assert_allclose([each[-1] for each in found], [each[-1] for each in expected], rtol=1e-5)
