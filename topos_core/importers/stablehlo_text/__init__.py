"""StableHLO text becomes a tape, read by jaxlib's parser; ops are those of JAX's primitives under other names."""
