"""Scaled dot product attention."""

from __future__ import annotations

from typing import Any, Final

from topos_core import nn
from topos_core.importers.torch_export.aten.elementwise import half_as_single
from topos_core.importers.torch_export.call import Call, NoFormula, Table
from topos_core.recording.value import Value


def _attention(
    call: Call, query: Value, key: Value, value: Value, mask: Any = None, dropout: float = 0.0, causal: bool = False,
    scale: Any = None, grouped: bool = False,
) -> Any:  # fmt: skip
    if dropout > 0:
        raise NoFormula("a random mask")
    return nn.attention(query, key, value, mask, causal, scale, hidden_rows=0)


TABLE: Final[Table] = {"scaled_dot_product_attention": half_as_single(_attention)}
