"""Train on a stock MiniGrid environment, with a new layout every episode, and draw what the agent sees.

Runs in seconds and learns nothing in them; for a real run raise STEPS, or use the command line:
skipper train --env minigrid:MiniGrid-FourRooms-v0 --tasks 0 --out runs/rooms
"""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt

import skipper
from skipper.envs.registry import find_family
from skipper.training.run import train
from skipper.training.settings import configure

ENV, STEPS = "minigrid:MiniGrid-FourRooms-v0", 300


def main(out: Path) -> None:
    """Train, load, act for one step, draw."""
    config = configure("debug", "skipper-regen", ENV)
    config = replace(config, steps=STEPS, tasks=0, evaluation=replace(config.evaluation, evaluation_episodes=2))
    config = replace(config, world=replace(config.world, max_steps=30))
    train(config, out)

    family, agent = find_family(ENV), skipper.load(out)
    tasks = family.evaluation_tasks(config.world, "unseen", 1, seed=0)
    observation, info = family.vector_env(1, tasks, config.world, one_each=True).reset(seed=0)
    print("action:", family.actions[int(agent.act(observation, info["goal"])[0])])
    plt.imsave(out / "task.png", family.draw(observation[0]))
    print("picture:", out / "task.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "rooms")
