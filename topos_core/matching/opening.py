"""Operands taken apart: a sum in a sum and a product in a product, where the program kept them because others read them too."""

from __future__ import annotations

from collections.abc import Sequence

from topos_core.matching.core import WIDEST
from topos_core.matching.func import Kid, composed
from topos_core.matching.products import power
from topos_core.matching.tuples import new_tuple


def opens(kind: str, kid: Kid) -> bool:
    """Says whether an operand of the same kind can be taken apart: nothing is added beside, and no domain changes."""
    func = kid.func
    if kind == "sum":
        return func.constant is None
    weight, count = kid.weight, len(func.kids)
    return all(power(inner, weight, count) is not None for _, _, inner in func.kids)


def regrouped(kind: str, written: Sequence[Kid]) -> list[list[Kid]]:
    """Lists the operands as written, and with one or both of them taken apart as they were written; none without any."""
    if not written:
        return []
    out = [list(written)]
    inside = [_parts_of(kind, kid) for kid in written]
    for which in ((0,), (1,), (0, 1)):
        if inside[which[0]] and inside[which[-1]]:
            out.append(
                [
                    one
                    for k, kid in enumerate(written)
                    for one in (_through(kind, kid, inside[k]) if k in which else [kid])
                ]
            )
    return out


def _parts_of(kind: str, kid: Kid) -> tuple[Kid, ...]:
    """Gives an operand's own operands, as written where it was flattened: a number inside then goes with its operand."""
    func = kid.func
    if func.kind != kind:
        return ()
    if func.written and (kind == "sum" or opens(kind, kid)):
        return func.written
    return func.kids if opens(kind, kid) else ()


def opened(kind: str, kids: Sequence[Kid], which: Sequence[int]) -> list[Kid]:
    """Lists operands with some of them taken apart, up to `WIDEST`."""
    out: list[Kid] = []
    for k, kid in enumerate(kids):
        if k not in which or len(out) >= WIDEST:
            out.append(kid)
        else:
            out += _through(kind, kid, kid.func.kids)
    return out


def _through(kind: str, kid: Kid, inside: Sequence[Kid]) -> list[Kid]:
    """Gives the operands of an operand with their weights in the whole."""
    func, outer, scale = kid
    count = len(func.kids)
    out = []
    for below, map_, own in inside:
        weight = own * scale if kind == "sum" else power(own, scale, count)
        out.append(new_tuple(Kid, (below, composed(map_, outer), weight)))
    return out


def unrooted(kids: Sequence[Kid]) -> list[Kid]:
    """Lists the operands of a product with roots that it divides by taken apart: `x * r` with `r = y ** -0.5` for others too."""
    out: list[Kid] = []
    for kid in kids:
        inside = kid.func.kids if kid.func.kind == "product" else ()
        apart = _through("product", kid, inside) if len(inside) == 1 and opens("product", kid) else [kid]
        root = apart[0].weight
        out += apart if root < 0 and not float(root).is_integer() else [kid]
    return out
