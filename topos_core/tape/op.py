"""One recorded op."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from topos_core.tape.type import TensorType


class Op(NamedTuple):
    """One row of a tape; op `i` names value `i`. A NamedTuple because recording builds one per op.

    `operands` are values (a value read twice stands twice), `location` is a row of `Tape.locations`.
    Attribute names and meanings per op stand in `topos_core/ops/`.
    """

    name: str
    operands: tuple[int, ...]
    attributes: Mapping[str, Any]
    type: TensorType
    location: int
