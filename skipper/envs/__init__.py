"""Environments and their ground truth."""
