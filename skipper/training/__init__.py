"""Loops that let agents act, learn and be evaluated."""
