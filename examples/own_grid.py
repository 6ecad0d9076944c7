"""An own grid in 30 lines, as on the page docs/your_environment.md: python examples/own_grid.py [FOLDER]."""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import numpy as np

from skipper.envs.grid.family import register_grid
from skipper.training.run import train
from skipper.training.settings import configure

MOVES = ((1, 0), (0, 1), (-1, 0), (0, -1))


class Pond(gym.Env):
    """Walk to the flag in the far corner; water ends the walk."""

    observation_space = gym.spaces.MultiDiscrete(np.full((5, 5, 2), (3, 2)))  # grass, water, flag; the agent
    action_space = gym.spaces.Discrete(4)
    action_names = ("right", "down", "left", "up")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.ground = np.zeros((5, 5), np.uint8)
        for x, y in self.np_random.integers(1, 4, (3, 2)):
            self.ground[x, y] = 1
        self.ground[4, 4] = 2
        self.at = (0, 0)
        return self._observe(self.at), {"goal": self._observe((4, 4))}

    def step(self, action):
        x, y = np.add(self.at, MOVES[action]).clip(0, 4)
        self.at = (int(x), int(y))
        ground = self.ground[self.at]
        return self._observe(self.at), float(ground == 2), bool(ground != 0), False, {}

    def _observe(self, at):
        agent = np.zeros((5, 5), np.uint8)
        agent[at] = 1
        return np.stack([self.ground, agent], -1)


register_grid("pond", Pond, max_steps=20)


def main(out: Path) -> None:
    """Train for a few seconds in the folder ``out``, and print what the run says of itself."""
    config = configure("debug", "skipper-regen", "pond")
    train(replace(config, steps=400, tasks=4), out)
    print((out / "evaluations.jsonl").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "pond")
