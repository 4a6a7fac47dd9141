"""Attention at home is what was recorded, whatever its mask lies along.

A mask's table lies along any two axes of the scores, in either order: positions and keys, keys and positions, heads and
groups, an axis and one of extent 1. Crossed with layouts (heads apart or inside the features, grouped heads, turned
scores, rows outside of batches), extents that cannot be told apart or that are 1, what the table hides and how.
"""

from __future__ import annotations

from itertools import permutations, product
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

from topos_core.kernels.home.manifest import Home, prepare
from topos_core.kernels.kernel import Offer
from topos_core.matching.catalog import patterns
from topos_core.matching.search import search
from topos_core.plan.request import Request
from topos_core.recording.trace import trace
from topos_core.run.interpreter import interpret
from topos_core.tape.tape import Tape
from topos_core.tape.type import numpy_dtype


class Layout(NamedTuple):
    """The axes of query, key, value, scores and result: `i` positions, `j` keys, `d` and `e` features."""

    q: str
    k: str
    v: str
    scores: str
    out: str


LAYOUTS: Final = {
    "one head": Layout("id", "jd", "je", "ij", "ie"),
    "one head, turned": Layout("id", "jd", "je", "ji", "ei"),
    "heads": Layout("bhid", "bhjd", "bhje", "bhij", "bhie"),
    "heads, turned": Layout("bhid", "bhjd", "bhje", "bhji", "bhie"),
    "heads inside the features": Layout("bihd", "bjhd", "bjhe", "bhij", "bihe"),
    "grouped heads": Layout("bhgid", "bhjd", "bhje", "bhgij", "bhgie"),
    "heads of groups, turned": Layout("bghid", "bhjd", "bhje", "bghji", "bgihe"),
    "keys for all": Layout("bhid", "jd", "je", "bhij", "bhie"),
    "rows outside": Layout("bid", "bjd", "bje", "ibj", "ibe"),
    "keys outside": Layout("dib", "djb", "ejb", "jib", "ibe"),
}
EXTENTS: Final = {
    "alike": dict.fromkeys("bhgijde", 4),
    "uneven": dict(zip("bhgijde", (2, 3, 2, 5, 7, 8, 6), strict=True)),
    "one query": dict(zip("bhgijde", (4, 2, 4, 1, 4, 4, 4), strict=True)),
    "two keys": dict(zip("bhgijde", (4, 2, 2, 4, 2, 4, 4), strict=True)),
    "one example": dict(zip("bhgijde", (1, 1, 1, 6, 6, 6, 6), strict=True)),
    "one feature": dict(zip("bhgijde", (2, 1, 2, 2, 2, 1, 1), strict=True)),
    "long": dict(zip("bhgijde", (2, 1, 2, 40, 40, 16, 16), strict=True)),
}
TABLES: Final = {
    "triangle": lambda rows, columns: np.tri(rows, columns, dtype=bool),
    "its later part": lambda rows, columns: ~np.tri(rows, columns, dtype=bool),
    "without the diagonal": lambda rows, columns: np.tri(rows, columns, -1, dtype=bool),
    "one further": lambda rows, columns: np.tri(rows, columns, 1, dtype=bool),
    "of the last positions": lambda rows, columns: np.tri(rows, columns, columns - rows, dtype=bool),
    "backwards": lambda rows, columns: np.tri(rows, columns, dtype=bool)[::-1, ::-1],
    "everything": lambda rows, columns: np.ones((rows, columns), bool),
    "nothing": lambda rows, columns: np.zeros((rows, columns), bool),
}
KINDS: Final = (
    "keeps",
    "hides",
    "added",
    "added numbers",
    "scaled after",
    "kept twice",
    "added and kept",
    "hides little",
)
DTYPES: Final = ("f32", "f64", "f32", "f16", "f32", "bf16", "f32")
TOLERANCE: Final = {"f32": 1e-5, "f64": 1e-13, "f16": 4e-3, "bf16": 4e-2}
"""Of results around 1: kernels of f16 and bf16 round once, the recorded ops at every step."""


class Case(NamedTuple):
    """A program: where the table lies, which one it is, how it is used, whether the program knows it."""

    layout: Layout
    extents: dict[str, int]
    axes: tuple[str, str]
    table: str
    kind: str
    known: bool = True
    dtype: str = "f32"

    def shape(self, axes: str) -> tuple[int, ...]:
        return tuple(self.extents[axis] for axis in axes)


def lying(case: Case, table: np.ndarray) -> np.ndarray:
    """Gives a table along two axes of the scores, the axes in front of both left out."""
    first, second = (case.layout.scores.index(axis) for axis in case.axes)
    shape = [1] * len(case.layout.scores)
    shape[first], shape[second] = (case.extents[axis] for axis in case.axes)
    return (table if first < second else table.T).reshape(shape[min(first, second) :])


def seen_by(case: Case) -> np.ndarray:
    return lying(case, TABLES[case.table](*case.shape("".join(case.axes))))


def masked(case: Case, scores: Any, mask: Any, further: np.ndarray) -> Any:
    """Applies a mask to scores, as the case says."""
    little = -1e4 if case.dtype == "f16" else -1e9
    match case.kind:
        case "keeps":
            return np.where(mask, scores * 0.5, -np.inf)
        case "hides":
            return np.where(mask, -np.inf, scores * 0.5)
        case "hides little":
            return np.where(mask, little, scores * 0.5)
        case "scaled after":
            return np.where(mask, scores, -np.inf) * 0.5
        case "kept twice":
            return np.where(mask, np.where(further, scores * 0.5, -np.inf), -np.inf)
        case "added and kept":
            return np.where(mask, scores * 0.5 + np.where(further, 0, 1).astype(scores.dtype), -np.inf)
        case _:
            return scores * 0.5 + mask


def mask_of(case: Case) -> np.ndarray:
    """Gives the case's mask: flags, or numbers that are added."""
    seen = seen_by(case)
    if case.kind.startswith("hides"):
        return ~seen
    if not case.kind.startswith("added") or case.kind == "added and kept":
        return seen
    hidden = -np.inf if case.kind == "added" else -2.0
    return np.where(seen, 0, hidden).astype(numpy_dtype(case.dtype))


def recorded(case: Case) -> Tape:
    mask, layout = mask_of(case), case.layout
    further = lying(case._replace(axes=("i", "j")), np.tri(*case.shape("ij"), 2, dtype=bool))
    axis = layout.scores.index("j")

    def program(q: Any, k: Any, v: Any, *given: Any) -> Any:
        scores = np.einsum(f"{layout.q},{layout.k}->{layout.scores}", q, k)
        scores = masked(case, scores, given[0] if given else mask, further)
        powers = np.exp(scores - scores.max(axis, keepdims=True))
        weights = powers / powers.sum(axis, keepdims=True)
        return np.einsum(f"{layout.scores},{layout.v}->{layout.out}", weights, v)

    specs = [_spec(case.dtype, case.shape(axes)) for axes in (layout.q, layout.k, layout.v)]
    if not case.known:
        specs.append(_spec("bool" if mask.dtype == bool else case.dtype, mask.shape))
    return trace(program, *specs)


def _spec(dtype: str, shape: tuple[int, ...]) -> str:
    return f"{dtype}[{','.join(map(str, shape))}]"


def given_to(case: Case) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    layout = case.layout
    drawn = [random.standard_normal(case.shape(axes)) for axes in (layout.q, layout.k, layout.v)]
    arrays = [array.astype(numpy_dtype(case.dtype)) for array in drawn]
    return arrays if case.known else [*arrays, mask_of(case)]


def agrees(case: Case) -> int:
    """Runs what home offers for the case's attention; says whether there is one."""
    tape, arrays = recorded(case), given_to(case)
    return taken_alike(case, tape, arrays, ("attention",), TOLERANCE[case.dtype])


def taken_alike(case: Case, tape: Tape, arrays: list[np.ndarray], chosen: tuple[str, ...], limit: float) -> int:
    """Compares what home makes of the one match of the last pattern with what was recorded; says whether there is a match."""
    found = search(tape, [patterns()[name] for name in chosen]).matches
    matches = [match for match in found if match.pattern == chosen[-1]]
    if not matches:
        return 0
    [match] = matches
    assert isinstance(Home().offer(tape, match, Request()), Offer)
    with np.errstate(all="ignore"):
        values = interpret(tape, arrays, keep=True)
    known = {value: values[value] for value in match.bindings.values() if tape.ops[value].name == "constant"}
    out = np.full_like(values[match.root], 77)
    bindings = {name: values[value] for name, value in match.bindings.items()}
    prepare(tape, match, known).run(bindings, {"result": out}, 1)
    close(case, out, values[match.root], limit)
    return 1


def close(case: Case, got: np.ndarray, want: np.ndarray, limit: float) -> None:
    np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), limit, limit, err_msg=str(case))


def everywhere(name: str, every: int, extents: str | None = None) -> list[Case]:
    """Crosses pairs of axes, tables and ways to use them, and deals dtypes out to them.

    Args:
        name: The layout.
        every: Takes so many-th cases; those of a triangle of positions and keys are all taken.
        extents: Only these, or all.
    """
    layout, cases = LAYOUTS[name], []
    start = 5 * list(LAYOUTS).index(name)
    for number, (of, axes, table, kind) in enumerate(
        product(EXTENTS, permutations(layout.scores, 2), TABLES, KINDS), start
    ):
        is_triangle = table == "triangle" and set(axes) == {"i", "j"}
        if extents in (None, of) and (number % every == 0 or is_triangle):
            dtype = DTYPES[number // 2 % len(DTYPES)]
            cases.append(Case(layout, EXTENTS[of], axes, table, kind, number // 2 % 4 != 1, dtype))
    return cases


def check(cases: list[Case]) -> None:
    """Runs cases, of which attention must be recognised in most."""
    offered = sum(agrees(case) for case in cases)
    assert offered >= 0.9 * len(cases), (offered, len(cases))


@pytest.mark.parametrize("name", LAYOUTS)
def test_attention_is_what_was_recorded(name: str) -> None:
    check(everywhere(name, 191))


@pytest.mark.conformance
@pytest.mark.parametrize("extents", EXTENTS)
@pytest.mark.parametrize("name", LAYOUTS)
def test_attention_is_what_was_recorded_everywhere(name: str, extents: str) -> None:
    check(everywhere(name, 3, extents))
