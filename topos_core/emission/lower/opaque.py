"""Foreign ops have no text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from topos_core.emission.builder import Builder, Ssa
from topos_core.emission.lower.lowering import Lower
from topos_core.errors import ConfigurationError
from topos_core.tape.op import Op


def _refuse(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    """Raises: a pick's operand is an opaque op, so it never gets here."""
    name = op.attributes.get("foreign", op.name)
    message = f"{name} is a foreign op that has no StableHLO; leave it out of the results, or write it with known ops"
    raise ConfigurationError(message, code="TP507", span=builder.span)


LOWERINGS: Final[Mapping[str, Lower]] = {"opaque": _refuse, "pick": _refuse}
