"""Scalar cores: maps, softmax and the norms of single examples, over dense memory."""
