"""Scaled dot-product attention, a block of query rows at a time."""
