"""Running tapes and plans."""
