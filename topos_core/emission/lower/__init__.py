"""Lowering of recorded ops, one file per op family."""
