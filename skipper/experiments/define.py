"""Experiments as data: items, and the trainings and evaluations that they share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from skipper.experiments.works import COMMON, Evaluation, Settings, Training, Work, resolve

FIRST_SEED = 33  # of training; earlier reporting seeds were looked at while the presets were made
FRESH_SEED = 41  # of Skipper and Director, whose presets changed after runs with earlier seeds were looked at
DEFAULT_ROOT = Path("runs/paper")
SKIPPERS = ("skipper-once", "skipper-regen", "skipper-goal")  # variants that can play with the same networks
TRAINED_AS = "skipper-regen"  # if they do

Layout = Literal["curves", "tasks", "bars", "suppression", "walks", "table", "pictures"]


@dataclass(frozen=True)
class Series:
    """A curve, a row of bars or a column of a table: an agent, how it is trained, and how its networks play."""

    label: str
    agent: str
    tasks: int = 50  # 0: a new task every episode
    training: Settings = ()
    play: Settings = ()


@dataclass(frozen=True)
class Item:
    """A figure or table of the paper."""

    name: str
    labels: tuple[str, ...]  # in the paper
    about: str
    layout: Layout
    series: tuple[Series, ...]
    truth: bool = False  # whether plans are compared with ground truth
    preset: str = "fast"
    steps: int | None = None  # None: the preset's
    seeds: int = 5
    episodes: int = 400  # tasks per evaluation set

    @property
    def needs_weights(self) -> bool:
        """Whether results are not enough: pictures are drawn by the networks themselves."""
        return self.layout == "pictures"


@dataclass(frozen=True)
class Scale:
    """How much of an item to run; what is None is the item's or the preset's choice."""

    preset: str | None = None
    seeds: int | None = None
    first_seed: int | None = None
    steps: int | None = None
    agents: tuple[str, ...] | None = None


def series_of(item: Item, scale: Scale) -> list[Series]:
    """The series of an item whose agents are wanted."""
    return [series for series in item.series if scale.agents is None or series.agent in scale.agents]


def seeds_of(agent: str, item: Item, scale: Scale) -> range:
    """The training seeds of an agent in an item."""
    usual = FRESH_SEED if agent in (*SKIPPERS, "director") else FIRST_SEED
    first = usual if scale.first_seed is None else scale.first_seed
    return range(first, first + (scale.seeds or item.seeds))


def evaluation_of(series: Series, item: Item, scale: Scale, seed: int) -> Evaluation:
    """The evaluation of one seed of a series, and with it the training that it needs."""
    steps = item.steps if scale.steps is None else scale.steps
    settings = {"tasks": series.tasks} | COMMON | dict(series.training) | ({"steps": steps} if steps else {})
    training = Training(series.agent, scale.preset or item.preset, seed, tuple(settings.items()))
    config = resolve(training)
    # The paper has no decision-time aids.
    play = ({"revisit_penalty": 0.0} if config.decision.revisit_penalty else {}) | dict(series.play)
    targets = getattr(config.learning, "training_targets", None) if series.agent in SKIPPERS else None
    if targets in ("random", "none"):
        # Variants of Skipper that do not plan in training differ only in how their networks play.
        training = replace(training, agent=TRAINED_AS)
        play = play if series.agent == TRAINED_AS else {"agent": series.agent} | play
    elif targets == "plan" and "oracle_parts" not in play:
        # Otherwise an agent learns from what its plans made it see.
        changed = {name: play.pop(name) for name in list(play) if name not in vars(config.decision)}
        training = replace(training, settings=(*training.settings, *changed.items()))
    training = _without_defaults(training)
    # Runs evaluate themselves during training; what plays otherwise, or is compared with truth, needs its own curve.
    count = config.evaluation.evaluation_episodes if play or item.truth else 0
    return Evaluation(training, tuple(play.items()), count, item.truth, item.episodes)


def _without_defaults(training: Training) -> Training:
    """The training without settings that its preset has anyway, so that runs with equal settings have equal names."""
    for entry in training.settings:
        shorter = replace(training, settings=tuple(other for other in training.settings if other != entry))
        if entry[0] not in ("tasks", *COMMON) and resolve(shorter) == resolve(training):
            training = shorter
    return training


def evaluations_of(item: Item, scale: Scale) -> dict[Series, list[Evaluation]]:
    """The evaluations of an item: one per seed of every series."""
    return {
        series: [evaluation_of(series, item, scale, seed) for seed in seeds_of(series.agent, item, scale)]
        for series in series_of(item, scale)
    }


def works_of(item: Item, scale: Scale) -> list[Work]:
    """All trainings and evaluations of an item, each once, seed by seed."""
    columns = evaluations_of(item, scale).values()
    evaluations = {each.name: each for row in zip(*columns, strict=True) for each in row}
    return [*{each.training.name: each.training for each in evaluations.values()}.values(), *evaluations.values()]


def missing(works: Sequence[Work], root: Path, *, weights: bool = False) -> list[Work]:
    """What is to be made.

    A training that is recorded and evaluated is made again only for its ``weights``. One that is lost is made again
    with its evaluations, since other machines train other weights.
    """
    unfinished = [work for work in works if not work.finished(root)]
    evaluated = {work.needs for work in works} - {work.needs for work in unfinished}
    wanted = {work for work in unfinished if weights or not (work in evaluated and work.recorded(root))}
    lost = {work for work in wanted if isinstance(work, Training) and not work.recorded(root)}
    return [work for work in works if work in wanted or work.needs in lost]
