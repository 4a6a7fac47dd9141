"""The serialised plan that every front end reads."""
