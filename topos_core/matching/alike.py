"""Which operand looks most like what a template needs: what a near miss shows beside it."""

from __future__ import annotations

from collections.abc import Sequence

from topos_core.matching.func import Func, Kid, heads_within, uncast

_EXTREMES = {"max", "min"}


def most_alike(wanted: Kid, kids: Sequence[Kid], product: bool) -> Kid:
    """Gives the operand that looks most like what is wanted: in a product to the same power, then of the same kind, then by what
    lies below.
    """
    func, heads = wanted.func, heads_within(wanted.func)

    def alike(kid: Kid) -> tuple[bool, bool, int]:
        power = product and kid.weight == wanted.weight
        return power, kid.func.kind == func.kind, (heads_within(kid.func) & heads).bit_count()

    return max(kids, key=alike)


def is_cast_of(wanted: Kid, kid: Kid) -> bool:
    """Says whether an operand is what a template needs but for a cast, of it or of its root."""
    inner, weight = uncast(kid.func), kid.weight
    if inner is kid.func:
        return False
    if inner.kind == "product" and len(inner.kids) == 1 and wanted.func.kind != "product":
        (root,) = inner.kids
        inner, weight = root.func, weight * root.weight
    return bool(weight == wanted.weight) and (inner.kind, inner.name) == (wanted.func.kind, wanted.func.name)


def may_be(template: Func, func: Func) -> bool:
    """Says whether a function could be what a template needs, by its head alone."""
    if template.kind == "hole":
        return True
    if func.kind != template.kind:
        return func.adds_nothing and may_be(template, func.kids[0].func)
    return func.name == template.name or (template.kind == "reduce" and {template.name, func.name} == _EXTREMES)
