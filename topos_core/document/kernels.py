"""Writes what runs a match as JSON: texts as they stand, everything else for display."""

from __future__ import annotations

from typing import Any

from topos_core.document.display import display
from topos_core.kernels.listing import KernelText, Listing


def kernel_listing(listing: Listing) -> dict[str, Any]:
    """Gives a listing's fields, with units and what is not known."""
    return {
        "path": listing.path,
        "target": display(listing.target),
        "ran": listing.ran,
        "sample_bytes": listing.sample_bytes,
        "kernels": [_kernel(one) for one in listing.kernels],
    }


def _kernel(one: KernelText) -> dict[str, Any]:
    return {
        "name": one.name,
        "variant": list(one.variant),
        "path": one.path,
        "compiler": one.compiler,
        "text": one.text,
        "generated": one.generated,
        "starts": [{"threads": start.threads, "words": dict(start.words)} for start in one.starts],
    }
