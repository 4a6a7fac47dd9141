"""Primitives of JAX as plain ops, one file a family; the folder is walked."""
