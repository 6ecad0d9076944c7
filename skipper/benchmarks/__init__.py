"""Measurements of speed, run by ``skipper bench``; never part of the tests."""
