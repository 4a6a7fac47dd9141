"""Named tuples without their constructors, where millions are made."""

from __future__ import annotations

from typing import Final

new_tuple: Final = tuple.__new__
"""`new_tuple(Kind, (field, ...))`: a named tuple's own constructor is a Python function, three times as dear."""
