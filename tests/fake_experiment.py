"""An output folder of ``skipper reproduce`` with results that nobody trained for, made in milliseconds."""

import json
from pathlib import Path

import numpy as np

from skipper.envs.registry import find_family
from skipper.experiments.works import Evaluation, Training, resolve
from skipper.training.evaluate import TRAINING, Episodes, summarise
from skipper.training.run_folder import RunFolder, weights_identity
from skipper.training.state_file import DamagedFileError

PLANS = ("delusional_target", "edge_error_from_delusional", "edge_error_to_delusional", "optimal_target")


def episodes(rng: np.random.Generator, count: int, rate: float) -> Episodes:
    solved = rng.random(count) < rate
    return Episodes(solved, ~solved, np.full(count, 9))


def fake_training(training: Training, root: Path) -> None:
    """A finished run folder."""
    config, rng = resolve(training), np.random.default_rng(training.seed)
    names = [TRAINING, *find_family(config.env).evaluation_names(config.world)]
    with RunFolder(training.folder(root), config) as folder:
        folder.save_weights(config.steps, {"weight": rng.random(2)})
    records = [
        {"step": step}
        | {name: summarise(episodes(rng, 20, 0.2 + 0.6 * step / config.steps))._asdict() for name in names}
        for step in range(0, config.steps + 1, config.steps // 4)
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (training.folder(root) / "evaluations.jsonl").write_text(lines)
    (training.folder(root) / "metrics.jsonl").write_text(json.dumps({"step": config.steps, "seconds": 90.0}) + "\n")


def fake_evaluation(evaluation: Evaluation, root: Path, rate: float = 0.7) -> None:
    """The file of an evaluation."""
    training = evaluation.training
    config, rng = resolve(training), np.random.default_rng(training.seed)
    names = [*find_family(config.env).evaluation_names(config.world), TRAINING]
    agent = dict(evaluation.play).get("agent", training.agent)
    about = {"agent": agent, "env": config.env, "seed": training.seed, "tasks": config.tasks, "steps": config.steps}
    try:
        _, weights = weights_identity(training.folder(root))
    except DamagedFileError:
        weights = training.name[-8:]
    about |= {"weights": weights, "split": "evaluation", "evaluation_seed": evaluation.seed}
    played = {name: episodes(rng, evaluation.episodes, rate) for name in names}
    sets = {name: summarise(each)._asdict() | {"outcomes": each.outcomes} for name, each in played.items()}
    document = {"about": about | {"episodes": evaluation.episodes}, "sets": sets}
    walks = {str(steps): {"failure": steps / 20 + 0.05 * rng.random()} for steps in range(1, 17)}
    truth = {name: {"walks": walks, "plans": {plan: float(rng.random()) for plan in PLANS}} for name in names}
    if evaluation.truth:
        document["truth"] = truth
    if evaluation.curve:
        more = {"truth": truth} if evaluation.truth else {}
        document["curve"] = [{"step": step, **sets, **more} for step in (0, config.steps // 2, config.steps)]
    evaluation.file(root).parent.mkdir(parents=True, exist_ok=True)
    evaluation.file(root).write_text(json.dumps(document))


def fake_works(works, root: Path, rates: dict[str, float] | None = None) -> None:
    """All runs of an item; ``rates`` are success rates by agent."""
    for work in works:
        if isinstance(work, Training):
            fake_training(work, root)
        else:
            agent = str(dict(work.play).get("agent", work.training.agent))
            fake_evaluation(work, root, (rates or {}).get(agent, 0.7))
