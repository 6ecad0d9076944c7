"""Networks: plain modules, and FrozenNetwork, which evaluates them fast. D is the width of a partial state."""
