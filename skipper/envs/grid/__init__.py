"""Fully observed grids of any Gymnasium environment: tasks are seeds, and everything else is asked of it."""
