"""Convolutions of any kind as contractions over offset lists."""
