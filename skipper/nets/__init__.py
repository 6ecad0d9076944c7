"""Networks; shapes as in ``types``, D for the width of a partial state."""
