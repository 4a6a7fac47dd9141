"""What another plan of the same tape changes in a document: all that a what-if has to carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

PLAN: Final = ("consumer", "fidelity", "machine", "cost", "dialect", "digest", "counts", "totals")
REST: Final = ("observations", "findings")


def changes(base: Mapping[str, Any], planned: Mapping[str, Any]) -> dict[str, Any]:
    """Compares two documents of one tape.

    Returns `changed`: regions that are new or read differently; `removed`: ids that are gone; `order`: all ids where their
    order is not the base's, else None; and the plan's own settings, figures, observations and findings. `liveness` is
    null where the other document was made without it: the curve is longer than all the rest.
    """
    before = {region["id"]: region for region in base["regions"]}
    after = {region["id"]: region for region in planned["regions"]}
    kept = [name for name in before if name in after]
    return {
        **{name: planned[name] for name in (*PLAN, *REST)},
        "liveness": planned.get("liveness"),
        "changed": [
            region for name, region in after.items() if before.get(name) is not region and before.get(name) != region
        ],
        "removed": [name for name in before if name not in after],
        "order": list(after) if list(after) != kept else None,
    }
