"""StableHLO text."""
