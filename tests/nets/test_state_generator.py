"""The generator of more than a cell: shapes, losses by hand, learning; and the paper's as its special case."""

import numpy as np
import torch
from torch.nn import functional

from skipper.config import GeneratorConfig
from skipper.nets.generator import CheckpointGenerator, GoalGenerator, codes_to_bits, placement_loss
from skipper.nets.layers import seeded_initialisation
from skipper.nets.state_generator import StateGenerator, StateGoalGenerator, checkpoint_generator, goal_generator
from skipper.runtime import mixed_radix
from skipper.types import EnvironmentSpec

CONFIG = GeneratorConfig(description_bits=5, generator_width=8)
PARTS = (9, 4, 11)  # cell, direction, and a key that may also be carried or gone
SPEC = EnvironmentSpec((3, 3, 2), (4, 6), 3, 10, parts=PARTS)


def test_numbers_of_several_digits():
    digits = np.stack(np.meshgrid(*(np.arange(size) for size in PARTS), indexing="ij"), -1).reshape(-1, 3)
    numbers = mixed_radix.join(digits, PARTS)
    assert sorted(numbers.tolist()) == list(range(9 * 4 * 11))
    assert (mixed_radix.split(numbers, PARTS) == digits).all()
    assert mixed_radix.join(np.array([2, 1, 3]), PARTS) == 2 + 9 * (1 + 4 * 3)
    logits = np.zeros((1, 24))
    logits[0, [2, 9 + 1, 13 + 3]] = 1
    assert mixed_radix.most_likely(logits, PARTS).tolist() == [2 + 9 * (1 + 4 * 3)]
    assert mixed_radix.most_likely(logits[:, :9], (9,)).tolist() == [2]


def test_one_part_is_the_papers_generator_and_several_are_not():
    plain = SPEC._replace(parts=())
    assert type(checkpoint_generator(CONFIG, plain)) is CheckpointGenerator
    assert type(goal_generator(CONFIG, plain)) is GoalGenerator
    assert type(checkpoint_generator(CONFIG, SPEC)) is StateGenerator
    assert type(goal_generator(CONFIG, SPEC)) is StateGoalGenerator


def test_losses_are_sums_over_parts():
    logits = torch.randn(2, 24, generator=torch.Generator().manual_seed(0))
    placement = torch.tensor([2 + 9 * (1 + 4 * 3), 8])
    expected = sum(
        functional.cross_entropy(part, torch.tensor(target), reduction="none")
        for part, target in zip(logits.split([9, 4, 11], 1), [[2, 8], [1, 0], [3, 0]], strict=True)
    )
    torch.testing.assert_close(placement_loss(logits, placement, PARTS), expected)


def batch(count: int, rng: np.random.Generator):
    """States with a random cell and direction, and a key at one of two cells."""
    digits = np.stack([rng.integers(size, size=count) for size in (9, 4, 2)], -1)
    states = np.zeros((count, 9, 2), np.uint8)
    states[np.arange(count), digits[:, 2], 0] = 3
    states[np.arange(count), digits[:, 0], 1] = 1 + digits[:, 1]
    return states.reshape(count, 3, 3, 2), mixed_radix.join(digits, PARTS)


def test_it_learns_cell_direction_and_key():
    rng = np.random.default_rng(0)
    config = GeneratorConfig(description_bits=8, generator_width=8, flat_description=True)
    with seeded_initialisation(0):
        generator = StateGenerator(config, SPEC._replace(examples=batch(64, rng)[0]))
    optimizer = torch.optim.Adam(generator.parameters(), 1e-2)
    losses = []
    for _ in range(200):
        states, placement = map(torch.from_numpy, batch(64, rng))
        loss = generator.losses(states, states.roll(1, 0), placement)["reconstruction"].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert np.mean(losses[-10:]) < 0.4 * losses[0], losses[::20]


def test_pairs_of_contexts_and_codes_are_what_plain_convolutions_make_of_each():
    rng = np.random.default_rng(0)
    spec = EnvironmentSpec((3, 4, 2), (4, 6), 3, 10, parts=(12, 4, 14))
    with seeded_initialisation(0):
        generator = StateGenerator(CONFIG, spec)
    states = torch.from_numpy(rng.integers(4, size=(3, 3, 4, 2), dtype=np.uint8))
    codes = torch.from_numpy(rng.integers(32, size=(3, 60)))
    with torch.no_grad():
        found, fuse = generator(states, codes), generator.fuse
        context = generator.context(states).repeat_interleave(60, dim=0)
        described = functional.relu(fuse.spread(codes_to_bits(codes.flatten(), 5).flatten(1)))
        joint = torch.cat([context, fuse.unfold(described[:, :, None, None])], 1)
        hidden = functional.relu(fuse.widen(functional.relu(joint)))
        maps = (fuse.locate(hidden) + fuse.skip(joint)).flatten(2)
        expected = fuse.place(maps, torch.cat([described, hidden.amax((2, 3))], -1))
    torch.testing.assert_close(found.flatten(0, 1), expected, atol=1e-5, rtol=1e-5)
    assert found.shape == (3, 60, 30)
