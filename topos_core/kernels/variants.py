"""Kernels that a request may switch off by name, beside patterns: a faster one for some matches of a pattern."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

VARIANTS: Final[Mapping[str, str]] = {
    "winograd": "convolutions of 3x3 windows by a quarter of the products, or four ninths; off: the direct kernel, with a tenth of the error",
}
"""Name to what it is and what runs without it."""
