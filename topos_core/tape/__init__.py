"""Data only: spans, types, ops, tapes."""
