"""Formulas over ops; no op is made here that a user could not make."""
