"""Kills and hostile files in any number: a few in the tests, many in ``make soak``."""
