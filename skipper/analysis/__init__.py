"""Comparison with ground truth, statistics and figures."""
