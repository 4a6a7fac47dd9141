"""Writes what runs a match as JSON: texts as they stand, everything else for display."""

from __future__ import annotations

from typing import Any, Final

from topos_core.document.display import display
from topos_core.kernels.listing import KernelText, Listing
from topos_core.kernels.vocabulary.program import Form, parse

MOST_OPS: Final = 5
"""Kinds of ops that a generated kernel's title names."""
_LOOPS: Final[dict[Form, str]] = {"map": "elements", "rows": "rows", "columns": "columns"}


def kernel_listing(listing: Listing) -> dict[str, Any]:
    """Gives a listing's fields, with units and what is not known."""
    return {
        "path": listing.path,
        "target": display(listing.target),
        "ran": listing.ran,
        "sample_bytes": listing.sample_bytes,
        "kernels": [_kernel(one) for one in listing.kernels],
    }


def _title(one: KernelText) -> str:
    """Names a kernel and what it was made for; a generated one, whose variant is a program, by what that computes."""
    if one.name != "expression":
        return " ".join((one.name, *one.variant))
    program = parse(one.variant[0])
    ops = [*dict.fromkeys(step.op for step in program.steps)]
    more = f" and {len(ops) - MOST_OPS} more" if len(ops) > MOST_OPS else ""
    dtypes = dict.fromkeys(program.steps[result].dtype for result in program.results)
    return f"{one.name} over {_LOOPS[program.form]}: {', '.join(ops[:MOST_OPS])}{more} ({', '.join(dtypes)})"


def _kernel(one: KernelText) -> dict[str, Any]:
    return {
        "name": one.name,
        "title": _title(one),
        "variant": list(one.variant),
        "path": one.path,
        "compiler": one.compiler,
        "text": one.text,
        "generated": one.generated,
        "starts": [{"threads": start.threads, "words": dict(start.words)} for start in one.starts],
    }
