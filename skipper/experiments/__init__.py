"""Experiments: definitions, execution and reports."""
