"""Functions of JAX become tapes: `make_jaxpr`, calls inlined, every primitive as plain ops or opaque under its own name."""
