"""Numba kernels, one file per pattern."""
