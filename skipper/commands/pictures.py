"""The paper's pictures: a proxy problem, a delusional plan, one histogram with two supports, what Director sees."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from skipper.envs.registry import find_family
from skipper.experiments.results import FIGURES
from skipper.experiments.works import EVALUATION_SEED, Training
from skipper.training.load import load
from skipper.viewer.gallery import Gallery, gallery

TASKS = tuple(range(30))  # unseen tasks that are searched for a plan to show
# An estimated distance with two likely values, for the picture of the two supports.
PROBABILITIES = np.array([0, 0.02, 0.1, 0.3, 0.18, 0.06, 0.02, 0, 0, 0.02, 0.06, 0.14, 0.07, 0.03, 0, 0])
DISCOUNT = 0.95


def draw_pictures(trainings: Sequence[Training], root: Path) -> list[Path]:
    """Draw what the trained agents have to show; a delusional plan only if there is one."""
    from skipper.analysis.paper_figures import draw_supports
    from skipper.analysis.plots import draw_moment

    folder = root / FIGURES
    drawn = draw_supports(PROBABILITIES, DISCOUNT, folder / "pictures-support-override")
    for training in trainings:
        loaded = load(training.folder(root), EVALUATION_SEED, explain=True)
        hardest = find_family(loaded.config.env).evaluation_names(loaded.config.world)[-1]
        shown = gallery(training.name, loaded, hardest, TASKS, seed=EVALUATION_SEED)
        director = training.agent == "director"
        moments = {"director" if director else "proxy-problem": (0, 0)}
        if not director and (found := find_delusion(shown)):
            moments["example-delusion"] = found
        for name, (episode, step) in moments.items():
            path = folder / f"pictures-{name}.png"
            draw_moment(shown.data, episode, step, shown.pictures(episode)[step], path)
            drawn.append(path)
    return drawn


def find_delusion(shown: Gallery) -> tuple[int, int] | None:
    """Episode and step of the first plan whose route uses an edge that no path in the task follows."""
    from skipper.analysis.plots import possible_paths

    for index, episode in enumerate(shown.data["episodes"]):
        for number, plan in enumerate(episode["plans"]):
            route: list[Any] = plan["route"]
            possible = possible_paths(episode, plan)
            if any(not possible[source, target] for source, target in pairwise(route)):
                return index, next(step for step, each in enumerate(episode["steps"]) if each["plan"] == number)
    return None
