"""Foreign programs become tapes."""
