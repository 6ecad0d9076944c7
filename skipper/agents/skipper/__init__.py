"""Skipper: decisions by planning over imagined checkpoints, and how its networks learn."""
