"""How long runs would take on one core of this machine."""

from collections.abc import Callable, Sequence
from pathlib import Path

from skipper.config import RunConfig
from skipper.envs.registry import find_family
from skipper.experiments.works import Training, Work, resolve
from skipper.training.run_folder import CHECKPOINTS

Measure = Callable[[RunConfig], tuple[float, float]]  # steps of training and episodes of evaluation per second


class Costs:
    """Estimates from a short measurement of every agent and preset, made when it is first needed."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self._speeds: dict[tuple[str, str], tuple[float, float]] = {}

    def seconds(self, works: Sequence[Work], root: Path) -> float:
        """Seconds on one core, for what is left of all of the runs together."""
        return sum(self._seconds(work) * _left(work, root) for work in works)

    def _seconds(self, work: Work) -> float:
        training = work if isinstance(work, Training) else work.training
        config = resolve(training)
        key = (training.agent, training.preset)
        if key not in self._speeds:
            # Settings that an item changes are taken to cost the same.
            self._speeds[key] = self._measure(resolve(Training(*key, training.seed, (("threads", 1),))))
        steps, episodes = self._speeds[key]
        sets = len(find_family(config.env).evaluation_names(config.world)) + 1  # unseen tasks and training tasks
        evaluations = config.steps // config.evaluation.evaluate_every + 1
        if isinstance(work, Training):
            return work.total / steps + evaluations * sets * config.evaluation.evaluation_episodes / episodes
        images = int(dict(work.play).get("ensemble", 1))
        return sets * images * (work.episodes + work.curve * evaluations) / episodes


def _left(work: Work, root: Path) -> float:
    """The share of a run that is still to be made; a training goes on from its last checkpoint."""
    if isinstance(work, Training) and list((work.folder(root) / CHECKPOINTS).glob("*.safetensors")):
        return max(0.0, 1 - work.done(root) / work.total)
    return 1.0
