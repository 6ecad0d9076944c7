"""The loop on a counting fake learner."""

import numpy as np
import pytest

from skipper.config import LearningConfig
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.tasks import tasks_from_text
from skipper.envs.lava.vector_env import LavaVectorEnv
from skipper.training.loop import Loop
from skipper.types import Decision, Stage, TimeStep, Transition


class CountingLearner:
    """Always moves east, and records everything that it is told."""

    def __init__(self, ready_after: int = 0) -> None:
        self.timesteps: list[TimeStep] = []
        self.transitions: list[Transition] = []
        self.updates: list[int] = []  # steps seen at each update
        self.steps = 0
        self.ready_after = ready_after

    def act(self, timestep: TimeStep) -> Decision:
        self.timesteps.append(timestep)
        return Decision(np.zeros(len(timestep.observation), np.int64))

    def observe(self, transition: Transition) -> None:
        self.transitions.append(transition)
        self.steps += len(transition.action)

    def ready(self) -> bool:
        return self.steps >= self.ready_after

    def learn(self) -> dict[str, float]:
        self.updates.append(self.steps)
        return {"loss": float(len(self.updates))}

    def state_dict(self):
        return {"steps": self.steps}

    def load_state_dict(self, state) -> None:
        self.steps = state["steps"]


def make(count: int = 3, ready_after: int = 0, **fields) -> tuple[Loop, CountingLearner]:
    tasks = tasks_from_text("A..G\n####\n....", world=LavaConfig(start="fixed"))
    learner = CountingLearner(ready_after)
    return Loop(learner, LavaVectorEnv(count, tasks=tasks), LearningConfig(**fields), seed=0), learner


@pytest.mark.parametrize("environments", [1, 3, 16])
@pytest.mark.parametrize("ratio", [4.0, 1.0, 0.5, 3.0])
def test_updates_keep_their_ratio_to_steps(environments, ratio):
    loop, learner = make(environments, learning_starts=48, steps_per_update=ratio)
    while loop.step < 480:
        loop.advance()
        assert loop.updates == len(learner.updates) == int(max(loop.step - 48, 0) / ratio)
    assert min(learner.updates) >= 48


def test_updates_wait_for_something_to_learn_from_and_are_then_made_up_for():
    loop, learner = make(2, ready_after=40, learning_starts=0, steps_per_update=2.0)
    while loop.step < 100:
        loop.advance()
    assert min(learner.updates) == 40
    assert len(learner.updates) == 50


def test_metrics_of_all_updates_are_returned():
    loop, _ = make(4, learning_starts=0, steps_per_update=2.0)
    assert loop.advance() == [{"loss": 1.0}, {"loss": 2.0}]


def test_transitions_end_in_the_last_observation_and_not_in_the_next_episodes_first():
    loop, learner = make(2, learning_starts=1000)
    for _ in range(7):
        loop.advance()
    tasks = loop.envs.tasks
    images = tasks.observe(np.zeros(12, int), np.arange(12))
    cells = [0, 3, 6, 0, 3, 6, 0]
    for step, transition in enumerate(learner.transitions):
        assert (transition.observation == images[cells[step]]).all()
        assert (transition.next_observation == images[cells[step] + 3]).all()
        assert (transition.terminated == (cells[step] == 6)).all()
        assert (transition.reward == (cells[step] == 6)).all()
    assert [bool(timestep.first[0]) for timestep in learner.timesteps] == [True, False, False] * 2 + [True]
    assert (learner.timesteps[0].goal == images[9]).all()


def test_outcomes_are_counted_until_they_are_taken():
    loop, _ = make(2, learning_starts=1000)
    for _ in range(6):
        loop.advance()
    assert loop.take_outcomes() == {"episodes": 4, "successes": 4}
    assert loop.take_outcomes() == {"episodes": 0, "successes": 0}


def test_a_saved_loop_continues_exactly():
    loop, learner = make(3, learning_starts=0)
    for _ in range(5):
        loop.advance()
    other, twin = make(3, learning_starts=0)
    other.load_state_dict(loop.state_dict())
    for _ in range(5):
        loop.advance()
        other.advance()
    assert (other.step, other.updates, other.outcomes) == (loop.step, loop.updates, loop.outcomes)
    for mine, its in zip(learner.transitions[5:], twin.transitions, strict=True):
        for one, two in zip(mine, its, strict=True):
            assert (one == two).all()


class StagedLearner(CountingLearner):
    """Two stages, of which the first is not charged; its action depends on the stage and its steps."""

    def __init__(self) -> None:
        super().__init__()
        self.stage, self.begun = "", list[tuple[str, int]]()

    def stages(self) -> tuple[Stage, ...]:
        return Stage("pretraining", 20, charged=False), Stage("training", 60, charged=True)

    def begin_stage(self, name: str) -> None:
        self.stage = name
        self.begun.append((name, self.steps))

    def act(self, timestep: TimeStep) -> Decision:
        super().act(timestep)
        return Decision(np.full(len(timestep.observation), (self.stage == "training") * (self.steps // 3 % 2)))

    def state_dict(self):
        return {"steps": self.steps, "stage": self.stage}

    def load_state_dict(self, state) -> None:
        self.steps, self.stage = state["steps"], state["stage"]


def make_staged() -> tuple[Loop, StagedLearner]:
    tasks = tasks_from_text("A..G\n####\n....", world=LavaConfig(start="fixed"))
    learner = StagedLearner()
    settings = LearningConfig(learning_starts=9, steps_per_update=2.0)
    return Loop(learner, LavaVectorEnv(3, tasks=tasks), settings, seed=0), learner


def test_steps_of_an_uncharged_stage_are_counted_apart_and_learned_from():
    loop, learner = make_staged()
    charged = []
    for _ in range(30):
        loop.advance()
        charged.append((loop.stage, loop.step, loop.uncharged))
        assert loop.all_steps == learner.steps
        # Each stage waits before its first update.
        assert loop.updates == max(loop.uncharged - 9, 0) // 2 + max(loop.step - 9, 0) // 2
    # A stage ends with the first step of all environments that uses up its budget; the last one goes on.
    assert charged[:7] == [(0, 0, 3 * (turn + 1)) for turn in range(7)]
    assert charged[7:] == [(1, 3 * (turn + 1), 21) for turn in range(23)]
    assert learner.begun == [("pretraining", 0), ("training", 21)]


@pytest.mark.parametrize("turn", [0, 3, 7, 8, 15])  # before, within and between the stages
def test_a_loop_saved_in_any_stage_continues_exactly(turn):
    loop, learner = make_staged()
    for _ in range(turn):
        loop.advance()
    other, twin = make_staged()
    other.load_state_dict(loop.state_dict())
    for _ in range(12):
        loop.advance()
        other.advance()
    assert (other.stage, other.step, other.uncharged) == (loop.stage, loop.step, loop.uncharged)
    assert (other.updates, other.outcomes) == (loop.updates, loop.outcomes)
    assert twin.begun == [begun for begun in learner.begun if begun[1] >= 3 * turn]
    for mine, its in zip(learner.transitions[turn:], twin.transitions, strict=True):
        for one, two in zip(mine, its, strict=True):
            assert (one == two).all()
    assert twin.updates == learner.updates[len(learner.updates) - len(twin.updates) :]


def test_a_learner_without_stages_has_one():
    loop, _ = make(2, learning_starts=1000)
    for _ in range(5):
        loop.advance()
    assert (loop.stage, loop.step, loop.uncharged, loop.all_steps) == (0, 10, 0, 10)
    assert len(loop.stages) == 1
