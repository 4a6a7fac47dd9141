"""Counts, machines and predicted time."""
