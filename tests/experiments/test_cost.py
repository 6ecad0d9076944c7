import json

from skipper.experiments.cost import Costs
from skipper.experiments.works import Evaluation, Training

TRAINING = Training("modelfree", "debug", 33, (("tasks", 2), ("steps", 1_000)))
# At steps 0, 500 and 1,000 a run plays 5 tasks of 4 unseen sets and of the training tasks.
OWN_EPISODES = 3 * 5 * 5


def test_costs_are_those_of_steps_and_episodes(tmp_path):
    costs = Costs(lambda config: (100.0, 25.0))
    assert costs.seconds([TRAINING], tmp_path) == 1_000 / 100 + OWN_EPISODES / 25
    assert costs.seconds([Evaluation(TRAINING, episodes=40)], tmp_path) == 5 * 40 / 25
    assert costs.seconds([Evaluation(TRAINING, episodes=40, curve=10)], tmp_path) == 5 * (40 + 3 * 10) / 25
    eight = Evaluation(TRAINING, (("ensemble", 8),), episodes=40)
    assert costs.seconds([eight], tmp_path) == 8 * 5 * 40 / 25


def test_what_a_checkpoint_holds_costs_nothing_more(tmp_path):
    costs, whole = Costs(lambda config: (100.0, 25.0)), 1_000 / 100 + OWN_EPISODES / 25
    checkpoints = TRAINING.folder(tmp_path) / "checkpoints"
    checkpoints.mkdir(parents=True)
    (TRAINING.folder(tmp_path) / "metrics.jsonl").write_text(json.dumps({"step": 750}) + "\n")
    assert costs.seconds([TRAINING], tmp_path) == whole  # records without a checkpoint, as in an archive
    (checkpoints / "step-000000000750.safetensors").write_bytes(b"state")
    assert costs.seconds([TRAINING], tmp_path) == 0.25 * whole


def test_every_agent_is_measured_once(tmp_path):
    measured = []
    costs = Costs(lambda config: measured.append(config.agent) or (100.0, 25.0))
    costs.seconds([TRAINING, Evaluation(TRAINING), Training("leap", "debug", 33)], tmp_path)
    assert measured == ["modelfree", "leap"]
