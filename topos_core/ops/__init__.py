"""The ops: one row each."""
