"""All pairs of windows and targets, against plain loops over a list of episodes."""

from typing import NamedTuple

import numpy as np
import pytest

from skipper.replay.all_pairs import NO_PAIR, Pairs
from skipper.replay.episodes import Episode
from skipper.replay.relabel import HindsightConfig
from skipper.replay.store import NO_TASK, TRIES, EpisodeStore
from tests.replay.numbered_episodes import episode, make, number, walk


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


class NaiveWindow(NamedTuple):
    path: list[int]  # the numbers of the episode's states
    slot: int  # its first
    begin: int
    steps: int
    targets: list[int]
    past_only: bool


class NaiveSampler:
    """Windows and pairs by plain loops, from the same random draws."""

    def __init__(self, store: EpisodeStore, config: HindsightConfig, rng: np.random.Generator) -> None:
        self.store, self.config, self.rng = store, config, rng
        self.stored = list(store.numbers())
        self.states = {
            each: number(store.observations(store.first[each] + np.arange(store.states[each]))).tolist()
            for each in self.stored
        }
        self.owner = {
            store.first[each] + index: each for each in self.stored for index in range(len(self.states[each]))
        }

    def pairs(self, independent: float) -> list[tuple]:
        """The columns of all pairs, with numbers of states in place of indices."""
        count = self.rng.binomial(self.config.pair_episodes, independent) if independent else 0
        windows = self.own_windows(self.config.pair_episodes - count) + self.independent_windows(count)
        found = {
            (row, step, target): self.pair(window, step, target)
            for row, window in enumerate(windows)
            for step in range(window.begin, window.begin + window.steps)
            for target in self.targets(window, step)
        }
        index = {key: place for place, key in enumerate(found)}
        return [(index.get((row, step + 1, target), NO_PAIR), *found[row, step, target]) for row, step, target in found]

    def targets(self, window: NaiveWindow, step: int) -> list[int]:
        path, own = window.path, window.path[window.begin : window.begin + window.steps + 1]
        allowed = {*path[window.begin : step + 1], *window.targets} if window.past_only else {*own, *window.targets}
        return [each for each in dict.fromkeys(own + window.targets) if each in allowed and each != path[step]]

    def pair(self, window: NaiveWindow, step: int, target: int) -> tuple:
        path, slot = window.path, window.slot + step
        reached = [later for later in range(step + 1, len(path)) if path[later] == target]
        rewards = self.store.reward[slot : window.slot + reached[0]] if reached else []
        return (
            path[step],
            path[step + 1],
            target,
            int(self.store.action[slot]),
            bool(self.store.terminated[slot]),
            path[step + 1] == target,
            float(reached[0] - step) if reached else np.inf,
            float(sum(0.9**k * reward for k, reward in enumerate(rewards))) if reached else -np.inf,
        )

    def episodes(self, count: int) -> list[int]:
        used, chosen = self.store.state_dict()["counters"]["used_slots"], []
        while len(chosen) < count:
            drawn = self.rng.integers(used, size=2 * count).tolist()
            chosen += [self.owner[slot] for slot in drawn if slot in self.owner]
        return chosen[:count]

    def own_windows(self, count: int) -> list[NaiveWindow]:
        config, rng, shape = self.config, self.rng, (count, self.config.pair_targets)
        chosen = self.episodes(count)
        lengths = np.array([len(self.states[each]) for each in chosen], int)
        steps = np.minimum(config.pair_transitions, lengths - 1)
        at_end = rng.random(count) < config.pair_endings
        begin = np.where(at_end, lengths - 1 - steps, rng.integers(lengths - steps))
        anywhere = rng.integers(lengths[:, None], size=shape)
        targets = [[self.states[each][index] for index in anywhere[row]] for row, each in enumerate(chosen)]
        for row, column in np.argwhere(rng.random(shape) < config.other_episodes):
            own, task = chosen[row], self.store.task
            if task[own] == NO_TASK:
                continue
            tried = [self.stored[int(unit * len(self.stored))] for unit in rng.random(TRIES)]
            others = [each for each in tried if each != own and task[each] == task[own]]
            if others:
                targets[row][column] = self.states[others[0]][rng.integers(len(self.states[others[0]]))]
        return [
            NaiveWindow(self.states[own], self.store.first[own], begin[row], steps[row], targets[row], False)
            for row, own in enumerate(chosen)
        ]

    def independent_windows(self, count: int) -> list[NaiveWindow]:
        config, rng, length = self.config, self.rng, self.config.pair_transitions
        guides = self.episodes(count)
        at_end = rng.random(count) < config.pair_endings
        last = np.array([len(self.states[each]) - 1 for each in guides], int)
        seen_at = rng.integers(np.where(at_end, np.maximum(last - length, 0), 0), last)
        visits = [self.visit(guide, place) for guide, place in zip(guides, seen_at, strict=True)]
        anyone = self.episodes(count)
        anywhere = rng.integers(np.zeros(count, int), np.array([len(self.states[each]) - 1 for each in anyone], int))
        alone = [own == guides[row] for row, (own, _) in enumerate(visits)]
        latest = np.where(alone, anywhere, last)
        # A slot of the guide or of the episode itself, whose numbers count in the draw.
        starts = [self.store.first[anyone[row] if alone[row] else guides[row]] for row in range(count)]
        begins = np.array(starts, int)[:, None]
        index = rng.integers(begins, begins + latest[:, None] + 1, size=(count, config.pair_targets)) - begins
        found = []
        for row, (own, begin) in enumerate(visits):
            if alone[row]:
                own, begin = anyone[row], anywhere[row]
            guide = own if alone[row] else guides[row]
            targets = [self.states[guide][place] for place in index[row]]
            if at_end[row] and not alone[row]:
                targets[0] = self.states[guide][-1]
            path = self.states[own]
            steps = min(length, len(path) - 1 - begin)
            found.append(NaiveWindow(path, self.store.first[own], begin, steps, targets, True))
        return found

    def visit(self, guide: int, place: int) -> tuple[int, int]:
        """Another episode that went on from the guide's state, and where it was there."""
        unit, state = self.rng.random(), self.states[guide][place]
        visits = [
            (own, index)
            for own in sorted(self.stored, key=lambda each: self.store.first[each])
            for index, seen in enumerate(self.states[own][:-1])
            if own != guide and seen == state
        ]
        return visits[int(unit * len(visits))] if visits else (guide, place)


@pytest.mark.parametrize("independent", [0.0, 0.5, 1.0])
def test_equal_to_the_naive_twin(independent):
    store, sampler = make(
        capacity=120, pair_episodes=3, pair_transitions=4, pair_targets=3, pair_endings=0.4, other_episodes=0.4
    )
    rng = np.random.default_rng(0)
    for turn in range(60):
        steps, task = int(rng.integers(1, 25)), int(rng.integers(-1, 3))
        base = 100 * (task + 1)
        store.add(walk(base + rng.integers(8, size=steps + 1), terminated=bool(turn % 2)), task)
        pairs = sampler.sample(np.random.default_rng(turn), independent)
        state = number(pairs.observation)
        columns = (pairs.action, pairs.terminated, pairs.reached, pairs.path_steps, pairs.path_reward)
        ends = (state[pairs.source], state[pairs.next], state[pairs.target])
        found = list(zip(pairs.following, *ends, *columns, strict=True))
        expected = NaiveSampler(store, sampler.config, np.random.default_rng(turn)).pairs(independent)
        assert [each[:-1] for each in found] == [each[:-1] for each in expected]
        np.testing.assert_allclose([each[-1] for each in found], [each[-1] for each in expected], rtol=1e-5)


def test_without_independent_targets_nothing_else_is_drawn():
    store, sampler = make(capacity=200, pair_endings=0.5, other_episodes=0.5)
    for index in range(3):
        store.add(episode(20 * index, 30), task=1)
    one, two = np.random.default_rng(3), np.random.default_rng(3)
    for mine, its in zip(sampler.sample(one), sampler.sample(two, independent=0.0), strict=True):
        np.testing.assert_array_equal(mine, its)
    assert one.bit_generator.state == two.bit_generator.state


@pytest.mark.parametrize("independent", [0.0, 1.0])
def test_pairs_are_followed_by_those_of_the_next_transition_with_the_same_target(independent):
    store, sampler = make(capacity=400, pair_episodes=6, pair_transitions=5, pair_targets=3)
    rng = np.random.default_rng(0)
    for index in range(8):
        store.add(walk(rng.integers(12, size=25))._replace(action=np.arange(24)), task=index)  # actions tell the step
    for _ in range(20):
        pairs = sampler.sample(rng, independent)
        follows = np.flatnonzero(pairs.following != NO_PAIR)
        after, window = pairs.following[follows], pairs.episode[pairs.source]
        assert (after > follows).all()
        assert len(set(after)) == len(after)
        assert (pairs.target[after] == pairs.target[follows]).all()
        assert (pairs.source[after] == pairs.next[follows]).all()
        assert (pairs.action[after] == pairs.action[follows] + 1).all()
        assert (window[after] == window[follows]).all()
        # The others have none: they reached their target, or are the last of their window.
        others = np.flatnonzero(pairs.following == NO_PAIR)
        ends = [pairs.action[window == row].max() for row in range(6)]
        assert all(pairs.reached[pair] or pairs.action[pair] == ends[window[pair]] for pair in others)
        assert not pairs.reached[follows].any()
