"""Load a trained agent in one line, let it plan, and plot the proxy problem: vertices, kept edges and the target."""

import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import skipper
from skipper.envs.registry import find_family
from skipper.planning.prune import EdgeStatus
from skipper.types import scene_of


def main(out: Path, run: str = "skipper-regen-50") -> None:
    """Plan in an unseen task and write the figure ``out``."""
    agent = skipper.load(run)
    family, world = find_family(agent.config.env), agent.config.world
    tasks = family.evaluation_tasks(world, family.evaluation_names(world)[-1], 1, seed=0)
    observation, info = family.vector_env(1, tasks, world, one_each=True).reset(seed=0)
    view = agent.plan(observation, info["goal"]).view(0)
    assert view.graph is not None

    picture = family.draw(observation[0])
    size = picture.shape[1] // observation.shape[1]
    cells = scene_of(family.spec(world)).agent_cell(view.states)
    at = (np.stack(np.divmod(cells, observation.shape[2]), -1) + 0.5) * size  # (N, 2) pixels
    plt.imshow(picture)
    for source, target in np.argwhere(view.graph.status == EdgeStatus.KEPT):
        plt.plot(*at[[source, target]].T, color="white", alpha=0.2, linewidth=0.8)
    plt.plot(*at[view.route].T, color="#56b4e9", linewidth=2.5)
    plt.scatter(*at[view.graph.kept].T, color="white", s=25, zorder=3)
    plt.scatter(*at[[view.target]].T, color="#f0e442", marker="*", s=200, zorder=4)
    plt.axis("off")
    plt.savefig(out, bbox_inches="tight")
    plt.close()
    print("picture:", out)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "plan.png")
