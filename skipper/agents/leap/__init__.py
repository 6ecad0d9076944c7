"""LEAP: subgoals found by the cross-entropy method, and a policy that minimises distances."""
