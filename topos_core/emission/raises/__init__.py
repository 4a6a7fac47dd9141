"""Raises of taken matches, one file per pattern."""
