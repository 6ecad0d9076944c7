import numpy as np

from skipper.agents.director.accuracy import SEEN
from skipper.agents.director.agent import DirectorAgent
from skipper.analysis.world_model_accuracy import IMAGINED, OBSERVED, random_sequences, world_model_accuracy
from skipper.envs.lava.config import LavaConfig
from skipper.envs.lava.family import LAVA, environment_spec
from skipper.envs.lava.tasks import training_tasks
from skipper.training.settings import configure

WORLD = LavaConfig(6, 6, difficulty=0.2, max_steps=30)
TASKS = training_tasks(WORLD, 3, seed=0)
SPEC = environment_spec(WORLD)


def test_sequences_are_walks_of_these_tasks():
    drawn = random_sequences(LAVA, TASKS, SPEC, np.random.default_rng(0))
    B, T = drawn.reward.shape  # noqa: N806
    assert T == OBSERVED + IMAGINED
    scenery = SPEC.scene.scenery(drawn.observation.reshape(B * T, *SPEC.shape))
    known = SPEC.scene.scenery(TASKS.observe(np.arange(3), TASKS.table.start))
    assert all(any((each == task).all() for task in known) for each in scenery[:: B * T // 50])
    cells = SPEC.scene.agent_cell(drawn.observation.reshape(B * T, *SPEC.shape)).reshape(B, T)
    moved = abs(np.diff(cells // 6, axis=1)) + abs(np.diff(cells % 6, axis=1))
    assert moved.max() == 1


def test_the_accuracy_of_a_model_that_knows_nothing():
    config = configure("debug", "director", world=WORLD)
    actor = DirectorAgent(config, SPEC).evaluator(np.random.default_rng(0))
    found = world_model_accuracy(actor, LAVA, TASKS, seed=0)
    cells = ["cell_seen", "cell_moved", *(f"cell_imagined_{step}" for step in range(1, IMAGINED + 1))]
    assert list(found) == [*cells, *(f"{what}_{seen}" for seen in SEEN for what in ("lives", "ends"))]
    assert max(found[name] for name in cells) < 0.3
    assert found == world_model_accuracy(actor, LAVA, TASKS, seed=0)
