"""How well the world model knows where the agent is, and when episodes end."""

import numpy as np
import torch

from skipper.agents.director.layers import UniformNoise
from skipper.agents.director.world_model import State, WorldModel, to_tensors
from skipper.replay import sequences as replay
from skipper.types import EnvironmentSpec, scene_of

OBSERVED = 5  # states that the model sees before it imagines
SEEN = (2, 5, 8, 11)  # states that the model has seen of an episode before it foresees whether it goes on


def cell_accuracy(
    model: WorldModel, spec: EnvironmentSpec, drawn: replay.Sequences, noise: UniformNoise
) -> dict[str, float]:
    """Share of sequences in which the decoded cell of the agent is right.

    In the last state that is seen, and in the states that are imagined after it, by their number. ``cell_moved`` is of
    the first imagined step alone, where the agent truly moved: an agent that stands still is easy to foresee.
    """
    # Only sequences that lie within an episode.
    drawn = replay.Sequences(*(column[~drawn.first[:, 1:].any(1)] for column in drawn))
    B, T = drawn.reward.shape  # noqa: N806
    if not B:
        return {}
    observed = min(OBSERVED, T - 1)
    uniform = noise.draw(T, B, model.dynamics.shape[0])
    found = model.open_loop(to_tensors(drawn, spec, str(uniform.device)), observed, uniform)  # (T, B)
    cells = scene_of(spec).agent_cell(drawn.observation.reshape(B * T, *spec.shape)).reshape(B, T)
    right = found.cpu().numpy() == cells.T  # (T, B)
    shares = {"cell_seen": right[observed - 1]}
    moved = cells[:, observed] != cells[:, observed - 1]  # (B,)
    if moved.any():
        shares["cell_moved"] = right[observed, moved]
    shares |= {f"cell_imagined_{ahead}": each for ahead, each in enumerate(right[observed:], 1)}
    return {name: float(each.mean()) for name, each in shares.items()}


@torch.no_grad()
def foreseen_endings(
    model: WorldModel, spec: EnvironmentSpec, drawn: replay.Sequences, noise: UniformNoise
) -> dict[str, float]:
    """Mean probability, foreseen one step ahead, that an episode goes on: where it does ("lives"), and where it ends.

    By the number of states that were seen of it, on which a model that knows what ends episodes does not depend.
    """
    B, T = drawn.reward.shape  # noqa: N806
    uniform = noise.draw(T, B, model.dynamics.shape[0])
    batch = to_tensors(drawn, spec, str(uniform.device))
    # Infer all states, and imagine the next one of each.
    state, _ = model.dynamics.observe(model.embed(batch.classes), batch.action, uniform, batch.first)
    ahead = model.dynamics.imagine(State(state.deter[:-1], state.stoch[:-1]), batch.action[1:], uniform[1:])
    found = model.predict_continuation(ahead.features).cpu().numpy().T  # (B, T - 1)
    # States seen of the present episode, and whether the next one belongs to it.
    begun = np.maximum.accumulate(np.where(drawn.first, np.arange(T), 0), axis=1)
    seen, inside, ends = (np.arange(T) - begun + 1)[:, :-1], ~drawn.first[:, 1:], drawn.terminal[:, 1:]
    which = {"lives": inside & ~ends, "ends": inside & ends}
    chosen = {f"{name}_{number}": each & (seen == number) for number in SEEN for name, each in which.items()}
    return {name: float(found[each].mean()) for name, each in chosen.items() if each.any()}
