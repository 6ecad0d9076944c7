import sys

import numpy as np
import pytest

from skipper.agents.policy_function import PolicyFunction, load_policy
from skipper.types import EnvironmentSpec, TimeStep

SPEC = EnvironmentSpec((3, 3, 2), (11, 6), 4, 10)
MODULE = """
import numpy as np

table = {}
number = 3


def act(observation):
    return np.zeros(len(observation), np.int64)


def make():
    return act


def make_number():
    return 3


def two(observation, state):
    return act(observation)


class Needy:
    def __init__(self, something):
        pass


def load(path):
    assert path == "weights.pt"
    return act
"""


def timestep(batch: int) -> TimeStep:
    observation = np.zeros((batch, 3, 3, 2), np.uint8)
    return TimeStep(observation, observation, np.ones(batch, bool))


@pytest.fixture
def module(tmp_path, monkeypatch):
    name = f"own_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    (tmp_path / f"{name}_broken.py").write_text("import no_such_library")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return name


@pytest.mark.parametrize(("function", "weights"), [("act", None), ("make", None), ("load", "weights.pt")])
def test_a_policy_or_what_makes_one_becomes_an_agent(module, function, weights):
    agent = load_policy(f"{module}:{function}", weights)(SPEC, np.random.default_rng(0))
    assert agent.act(timestep(5)).action.tolist() == [0] * 5


@pytest.mark.parametrize("returned", [[1, 2], np.array([1, 2], np.uint8), np.array([1, 2], np.int32)])
def test_whole_numbers_of_any_kind_are_actions(returned):
    action = PolicyFunction(lambda _: returned, "own", 4).act(timestep(2)).action
    assert action.tolist() == [1, 2]
    assert action.dtype == np.int64


@pytest.mark.parametrize(
    ("returned", "complaint"),
    [
        (np.zeros((2, 4)), r"of shape \(2,\), got shape \(2, 4\)"),
        (np.zeros(3, int), r"got shape \(3,\)"),
        (0, r"got shape \(\)"),
        (np.zeros(2), "got float64"),
        (np.zeros(2, bool), "got bool"),
        (None, r"got shape \(\)"),
        (np.array([0, 4]), "from 0 to 3 .*, got 0 to 4"),
        (np.array([-1, 0]), "got -1 to 0"),
    ],
)
def test_what_is_no_action_is_refused(returned, complaint):
    with pytest.raises(ValueError, match=f"own: wanted 2 actions.*{complaint}"):
        PolicyFunction(lambda _: returned, "own", 4).act(timestep(2))


def test_a_policy_cannot_change_what_others_see():
    def scribble(observation):
        observation[:] = 7
        return np.zeros(len(observation), np.int64)

    step = timestep(2)
    PolicyFunction(scribble, "own", 4).act(step)
    assert not step.observation.any()


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("act", "wants module:function, such as my_agent:act, got 'act'"),
        ("MODULE:", "wants module:function"),
        ("no_such_module:act", "there is no module 'no_such_module'"),
        ("no_such_package.module:act", "there is no module 'no_such_package'"),
        ("MODULE_broken:act", "MODULE_broken needs a module that is not installed: no_such_library"),
        ("MODULE:atc", "unknown function of MODULE 'atc'.*did you mean 'act'"),
        ("MODULE:number", "wanted a function of one argument"),
        ("MODULE:two", "wanted a function of one argument"),
        ("MODULE:Needy", "wanted a function of one argument"),
        ("MODULE:make_number", "this one returned int"),
    ],
)
def test_what_is_no_policy_is_refused(name, complaint, module):
    with pytest.raises(ValueError, match=complaint.replace("MODULE", module)):
        load_policy(name.replace("MODULE", module))(SPEC, np.random.default_rng(0))


def test_weights_need_a_function_that_takes_them(module):
    with pytest.raises(ValueError, match="with --weights, one that takes their path"):
        load_policy(f"{module}:make", "weights.pt")
