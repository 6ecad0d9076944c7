import numpy as np

from skipper.agents.exploration import EpsilonGreedy, RevisitPenalty
from skipper.agents.visits import EpisodeVisits
from skipper.types import EnvironmentSpec, TimeStep

SPEC = EnvironmentSpec((1, 1, 1), (9,), 2, 4)


def step(states: list[int], *, first: bool = False) -> TimeStep:
    observation = np.array(states, np.uint8).reshape(-1, 1, 1, 1)
    return TimeStep(observation, observation, np.full(len(states), first))


def test_visits_are_counted_by_state_and_action_until_the_episode_ends():
    visits = EpisodeVisits.empty(2, 4)
    for key, action in (([7, 7], [0, 1]), ([7, 8], [0, 1]), ([5, 7], [1, 1])):
        visits.record(np.array(key), np.array(action))
    rows, keys = np.arange(2), np.array([[7, 5], [7, 8]])
    assert visits.counts(rows, keys, 2).tolist() == [[[2, 0], [0, 1]], [[0, 2], [0, 1]]]
    visits.begin_episodes(np.array([True, False]))
    assert visits.counts(rows, keys, 2).tolist() == [[[0, 0], [0, 0]], [[0, 2], [0, 1]]]


def test_an_agent_in_a_circle_leaves_it():
    """Action 0 is worth 1 and action 1 is worth 0.9; with a penalty of 0.06, two visits make 1 worth less."""

    def agent(penalty: float) -> EpsilonGreedy:
        values = lambda seen: np.tile([1.0, 0.9], (len(seen), 1))  # noqa: E731
        revisits = RevisitPenalty(penalty, SPEC) if penalty else None
        return EpsilonGreedy(values, 0.0, np.random.default_rng(0), revisits=revisits)

    steps = [step([3], first=True), step([3]), step([3]), step([4])]
    assert [int(agent(0.0).act(each).action[0]) for each in steps] == [0, 0, 0, 0]
    careful = agent(0.06)
    assert [int(careful.act(each).action[0]) for each in steps] == [0, 0, 1, 0]
    decision = careful.act(step([3], first=True))  # a new episode forgets
    assert decision.action[0] == 0
    np.testing.assert_allclose(careful.act(step([3])).values, [[0.94, 0.9]])
