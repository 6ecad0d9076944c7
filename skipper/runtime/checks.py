"""Checks of settings, and the message for an unknown name."""

import math
from collections.abc import Iterable
from dataclasses import fields
from difflib import get_close_matches
from typing import Any


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
    """The message for an unknown name, with the nearest one that is available."""
    names = sorted(available)
    nearest = get_close_matches(name, names, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return f"unknown {what} {name!r:.80}; available: {', '.join(names)}{hint}"
