"""Checks of settings, and the message for an unknown name."""

import math
from collections.abc import Iterable
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

MOST_NAMES, SHOWN_OF_MANY = 40, 5  # in a message


def check_positive(config: Any, *names: str) -> None:
    """Refuse named fields that are not positive, and any field that is not finite."""
    for entry in fields(config):
        value = getattr(config, entry.name)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{entry.name} must be a finite number, got {value}")
    for name in names:
        if not getattr(config, name) > 0:
            raise ValueError(f"{name} must be positive, got {getattr(config, name)}")


def check_shares(config: Any, *names: str) -> None:
    """Refuse named fields outside of [0, 1]."""
    for name in names:
        if not 0.0 <= getattr(config, name) <= 1.0:
            raise ValueError(f"{name} must be 0 to 1, got {getattr(config, name)}")


def check_discounts(config: Any, *names: str) -> None:
    """Refuse named fields outside of (0, 1)."""
    for name in names:
        if not 0.0 < getattr(config, name) < 1.0:
            raise ValueError(f"{name} must lie between 0 and 1, got {getattr(config, name)}")


def check_choice(what: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse a value that is not among the choices."""
    if value not in choices:
        raise ValueError(nearest_name(what, value, choices))


def nearest_name(what: str, name: str, available: Iterable[str]) -> str:
    """The message for an unknown name, with those that are available; of very many only the nearest."""
    names = sorted(available)
    shown = names if len(names) <= MOST_NAMES else get_close_matches(name, names, n=SHOWN_OF_MANY, cutoff=0.0)
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return f"unknown {what} {name!r:.80}; available: {', '.join(shown)}{more}{did_you_mean(name, names)}"


def did_you_mean(name: str, available: Iterable[str]) -> str:
    """The end of a message about an unknown name: the nearest one that is available, if any is near."""
    nearest = get_close_matches(name, sorted(available), n=1)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""
