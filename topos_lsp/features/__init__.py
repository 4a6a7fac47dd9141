"""One editor feature a file."""
