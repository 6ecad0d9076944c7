"""Planning on proxy problems: pruning, value iteration, the choice of a target. Knows no networks."""
