"""Planning on proxy problems: pruning, value iteration and the choice of a target, without any network."""
