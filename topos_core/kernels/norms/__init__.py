"""Normalisation of channels."""
