"""How well the world model knows where the agent is: seen, and imagined without looking."""

import torch
from torch.nn import functional

from skipper.agents.director.layers import UniformNoise
from skipper.agents.director.pictures import palette_of
from skipper.agents.director.world_model import Sequences, WorldModel
from skipper.replay import sequences as replay
from skipper.types import EnvironmentSpec, scene_of

OBSERVED = 5  # states that the model sees before it imagines


def to_tensors(drawn: replay.Sequences, spec: EnvironmentSpec, device: str) -> Sequences:
    """B sequences of T states as tensors, time first."""
    B, T = drawn.reward.shape  # noqa: N806
    classes = palette_of(spec).classes(drawn.observation.reshape(B * T, *spec.shape))
    columns = (classes.reshape(B, T, *classes.shape[1:]), drawn.action, drawn.reward, drawn.terminal)
    moved = [torch.from_numpy(column).to(device).transpose(0, 1).contiguous() for column in columns]
    action = functional.one_hot(moved[1], spec.actions).float()
    return Sequences(moved[0], action, moved[2].float(), moved[3].float())


def cell_accuracy(
    model: WorldModel, spec: EnvironmentSpec, drawn: replay.Sequences, noise: UniformNoise
) -> dict[str, float]:
    """Share of sequences in which the decoded cell of the agent is right.

    In the last state that is seen, and in the states that are imagined after it, by their number.
    """
    B, T = drawn.reward.shape  # noqa: N806
    observed = min(OBSERVED, T - 1)
    uniform = noise.draw(T, B, model.dynamics.shape[0])
    found = model.open_loop(to_tensors(drawn, spec, str(uniform.device)), observed, uniform)  # (T, B)
    cells = scene_of(spec).agent_cell(drawn.observation.reshape(B * T, *spec.shape)).reshape(B, T)
    right = (found.cpu().numpy() == cells.T).mean(1)  # (T,)
    imagined = {f"cell_imagined_{ahead}": float(share) for ahead, share in enumerate(right[observed:], 1)}
    return {"cell_seen": float(right[observed - 1])} | imagined
