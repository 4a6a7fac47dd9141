"""Which regions lead where several stand, and which nobody is told of by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from topos_core.matching.order import LAST

VERDICTS: Final = ("blocked", "declined", "near_miss", "taken")
"""What loses most comes first."""
APART: Final = 1.1
"""Predicted times closer than this tell a reader nothing: the model does not tell them apart either."""


def order(region: Mapping[str, Any]) -> tuple[bool, int]:
    """Orders regions for people: by verdict, behind all others what only says that small ops stay what they are."""
    return is_left(region), VERDICTS.index(region["verdict"])


def is_left(region: Mapping[str, Any]) -> bool:
    """Tells a loop of ops that nothing else names, declined: the ops run as recorded, and no layer was missed."""
    return region["verdict"] == "declined" and region["pattern"] in LAST


def is_listed(region: Mapping[str, Any]) -> bool:
    """Tells whether a declined region is a finding: not where a kernel was to be as fast, nor where small ops are left."""
    if region["code"] != "TP202":
        return True
    before, after = (region["cost"][name]["value"] for name in ("seconds_before", "seconds_after"))
    is_a_draw = before is not None and after is not None and after <= APART * before
    return not (is_a_draw or is_left(region))
