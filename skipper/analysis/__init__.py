"""What trained agents get right, by ground truth, statistics and figures."""
