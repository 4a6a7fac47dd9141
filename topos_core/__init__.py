"""Topos: the tape is the spec; a faster form is an offer that a run may take."""
