"""How well the world model knows where the agent is: seen, and imagined without looking."""

from skipper.agents.director.layers import UniformNoise
from skipper.agents.director.world_model import WorldModel, to_tensors
from skipper.replay import sequences as replay
from skipper.types import EnvironmentSpec, scene_of

OBSERVED = 5  # states that the model sees before it imagines


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
