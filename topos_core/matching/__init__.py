"""Recognition: one read-only pass over a tape."""
