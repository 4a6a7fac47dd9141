"""Every einsum becomes sums, permutes, reshapes and batched matrix products: what BLAS, interpreters and XLA all take.

As a broadcast product and a sum it would be the same match, but cost the full product's memory.
"""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from topos_core.recording import constant, contraction, elementwise, formulas, movement, reductions, views
from topos_core.recording.recorder import recorder_of
from topos_core.recording.value import Value

Term = tuple[str, ...]


class _Malformed(Exception):
    """Subscripts that cannot be read."""


def einsum(
    subscripts: Any,
    *operands: Any,
    out: Any = None,
    optimize: Any = False,
    dtype: Any = None,
    order: str = "K",
    casting: str = "safe",
) -> Value:
    """Records np.einsum, operands from left to right; `optimize` changes nothing."""
    recorder = recorder_of(subscripts, *operands)
    if out is not None:
        raise recorder.error("np.einsum(out=...) writes into an array; use the returned value")
    if not isinstance(subscripts, str):
        raise recorder.error("np.einsum with lists of axis numbers is not recorded; write the subscript string")
    values = [constant.lift(recorder, x) for x in operands]
    try:
        terms, result = _parse(subscripts, tuple(value.ndim for value in values))
    except _Malformed as error:
        shown = ", ".join(str(value.type) for value in values)
        raise recorder.error(f"einsum {subscripts!r} over {shown}: {error}") from None
    wanted = elementwise.common(recorder, tuple(values)) if dtype is None else constant.dtype_named(recorder, dtype)
    running = "i64" if wanted == "bool" else wanted
    value, term = _contract([elementwise.cast(value, running) for value in values], terms, result)
    value = movement.permute(value, [term.index(letter) for letter in result])
    if wanted == "bool":
        return value != 0
    if len(values) == 1 and operands[0] is values[0] and len(result) == len(set(terms[0])):
        return views.shared(values[0], value)  # nothing is computed: NumPy gives a view
    return formulas.fresh(value)


@lru_cache(maxsize=1024)
def _parse(subscripts: str, ranks: tuple[int, ...]) -> tuple[tuple[Term, ...], Term]:
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) != len(ranks):
        raise _Malformed(f"{len(parts)} terms for {len(ranks)} operands; write one term per operand")
    stray = sorted(set(subscripts) - set(string.ascii_letters) - set(" ,->."))
    if stray:
        raise _Malformed(f"{stray[0]!r} is no index; use letters")
    spares = [_spare(part, rank) for part, rank in zip(parts, ranks, strict=True)]
    widest = max(spares, default=0)
    terms = tuple(_expand(part, spare, widest) for part, spare in zip(parts, spares, strict=True))
    letters = [letter for term in terms for letter in term]
    if arrow:
        result = _expand(right, widest, widest) if "..." in right else tuple(right)
    else:
        free = sorted({letter for letter in letters if letters.count(letter) == 1 and not letter.startswith(".")})
        result = (*(f".{k}" for k in range(widest)), *free)
    for letter in result:
        if result.count(letter) > 1:
            raise _Malformed(f"the result names {letter!r} twice; name it once")
        if letter not in letters:
            raise _Malformed(f"the result names {letter!r}, which no operand has")
    return terms, result


def _spare(part: str, rank: int) -> int:
    """Counts the axes that an ellipsis stands for."""
    named = len(part.replace("...", ""))
    if "." in part.replace("...", "", 1):
        raise _Malformed(f"{part!r} has a stray dot; an ellipsis is three, once")
    if named > rank or ("..." not in part and named < rank):
        raise _Malformed(f"{part!r} names {named} axes of an operand that has {rank}")
    return rank - named if "..." in part else 0


def _expand(part: str, spare: int, widest: int) -> Term:
    before, ellipsis, after = part.partition("...")
    hidden = (f".{k}" for k in range(widest - spare, widest)) if ellipsis else ()
    return (*before, *hidden, *after)


def _contract(values: Sequence[Value], terms: Sequence[Term], result: Term) -> tuple[Value, Term]:
    prepared = [_diagonals(value, term) for value, term in zip(values, terms, strict=True)]
    prepared = _without_stretched(prepared)
    value, term = prepared[0]
    for at in range(1, len(prepared)):
        needed = set(result).union(*(later for _, later in prepared[at + 1 :]))
        value, term = _pair(value, term, *prepared[at], needed)
    return _drop(value, term, set(result))


def _diagonals(value: Value, term: Term) -> tuple[Value, Term]:
    """Reads the diagonal where a term repeats an index."""
    distinct = tuple(dict.fromkeys(term))
    if len(distinct) == len(term):
        return value, term
    strides = movement.row_major_strides(value.type.shape)
    places = {letter: [axis for axis, each in enumerate(term) if each == letter] for letter in distinct}
    for letter, axes in places.items():
        extents = [value.type.shape[axis] for axis in axes]
        if len(set(extents)) > 1:
            raise value.recorder.error(
                f"einsum index {letter!r} has extents {extents} in {value.type}; a diagonal needs equal ones"
            )
    shape = [value.type.shape[axes[0]] for axes in places.values()]
    return movement.strided(value, shape, [sum(strides[axis] for axis in axes) for axes in places.values()]), distinct


def _without_stretched(prepared: list[tuple[Value, Term]]) -> list[tuple[Value, Term]]:
    """Drops axes of extent 1 that meet a longer axis: they only repeat."""
    extent: dict[str, int] = {}
    for value, term in prepared:
        for letter, length in zip(term, value.type.shape, strict=True):
            known = extent.setdefault(letter, length)
            if known == 1:
                extent[letter] = length
            elif length not in (1, known):
                raise value.recorder.error(
                    f"einsum index {letter.lstrip('.')!r} has extents {known} and {length}; they must be equal or 1"
                )
    found = []
    for value, term in prepared:
        kept = [axis for axis, letter in enumerate(term) if value.type.shape[axis] == extent[letter]]
        found.append(
            (
                movement.reshape(value, tuple(value.type.shape[axis] for axis in kept)),
                tuple(term[axis] for axis in kept),
            )
        )
    return found


def _drop(value: Value, term: Term, needed: set[str]) -> tuple[Value, Term]:
    """Sums the indices that nothing else reads."""
    gone = tuple(axis for axis, letter in enumerate(term) if letter not in needed)
    if not gone:
        return value, term
    return reductions.plain_sum(value, gone), tuple(letter for letter in term if letter in needed)


def _pair(a: Value, term_a: Term, b: Value, term_b: Term, needed: set[str]) -> tuple[Value, Term]:
    a, term_a = _drop(a, term_a, needed.union(term_b))
    b, term_b = _drop(b, term_b, needed.union(term_a))
    extent = dict(zip((*term_a, *term_b), (*a.type.shape, *b.type.shape), strict=True))
    batch = [letter for letter in term_a if letter in term_b and letter in needed]
    inner = [letter for letter in term_a if letter in term_b and letter not in needed]
    rows = [letter for letter in term_a if letter not in term_b]
    columns = [letter for letter in term_b if letter not in term_a]
    kept = (*batch, *rows, *columns)
    if not inner:  # nothing is summed: a broadcast product
        wide = [
            movement.reshape(
                movement.permute(value, [term.index(letter) for letter in kept if letter in term]),
                tuple(extent[letter] if letter in term else 1 for letter in kept),
            )
            for value, term in ((a, term_a), (b, term_b))
        ]
        return elementwise.apply(np.multiply, (wide[0], wide[1])), kept

    def matrix(value: Value, term: Term, first: list[str], second: list[str]) -> Value:
        ordered = movement.permute(value, [term.index(letter) for letter in (*batch, *first, *second)])
        sizes = [math.prod(extent[letter] for letter in group) for group in (first, second)]
        return movement.reshape(ordered, (*(extent[letter] for letter in batch), *sizes))

    found = contraction.product(matrix(a, term_a, rows, inner), matrix(b, term_b, inner, columns))
    return movement.reshape(found, tuple(extent[letter] for letter in kept)), kept
