"""Attention with its projections at home is what was recorded: layouts of heads, masks, and weights that are one matrix.

What projects queries, keys and values may be one weight, the same one turned, or one each; of one sequence or of two. The
masks are those of `test_attention_masks`, whose axes and layouts are crossed with that.
"""

from __future__ import annotations

import math
from itertools import permutations, product
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

from tests.laws.test_attention_masks import LAYOUTS, TABLES, TOLERANCE, Case, lying, mask_of, masked, taken_alike
from topos_core.recording.trace import trace
from topos_core.tape.tape import Tape
from topos_core.tape.type import numpy_dtype

HEADS: Final = ("heads", "heads, turned", "heads inside the features", "grouped heads", "heads of groups, turned")
EXTENTS: Final = {
    "alike": dict.fromkeys("bhgijde", 4),
    "square": dict(zip("bhgijde", (2, 2, 1, 8, 8, 4, 4), strict=True)),
    "uneven": dict(zip("bhgijde", (2, 3, 2, 5, 7, 8, 6), strict=True)),
    "one query": dict(zip("bhgijde", (3, 2, 2, 1, 4, 4, 4), strict=True)),
    "long": dict(zip("bhgijde", (1, 2, 2, 40, 40, 16, 16), strict=True)),
}
TIES: Final = ("apart", "one weight", "keys turned", "values turned", "queries turned", "positions projected")
KINDS: Final = ("keeps", "hides", "added", "kept twice", "added and kept")


class Block(NamedTuple):
    """A program: its attention, and how weights are shared."""

    case: Case
    tie: str
    two: bool

    @property
    def features(self) -> int:
        """Counts x's: as many as all heads of queries have."""
        return math.prod(self.case.shape(self.case.layout.q.translate(str.maketrans("", "", "bi"))))


def recorded(block: Block) -> tuple[Tape, list[np.ndarray]]:
    """Records a block and draws its inputs; weights that cannot be one are drawn apart."""
    case, layout = block.case, block.case.layout
    random = np.random.default_rng(0)
    axes = {"q": layout.q, "k": layout.k, "v": layout.v}
    heads = {side: [axis for axis in names if axis not in "bij"] for side, names in axes.items()}
    widths = {side: math.prod(case.shape("".join(names))) for side, names in heads.items()}
    features, context = block.features, block.two or case.extents["i"] != case.extents["j"]
    mask = mask_of(case)
    further = lying(case._replace(axes=("i", "j")), np.tri(*case.shape("ij"), 2, dtype=bool))
    axis = layout.scores.index("j")
    turned_x = block.tie == "positions projected" and not context and case.extents["i"] == features

    def side(name: str, x: Any, weight: Any) -> Any:
        shape = [case.extents[axis] for axis in heads[name]]
        rows = "j" if name != "q" else "i"
        return np.einsum(f"b{rows}f,f{''.join(heads[name])}->{axes[name]}", x, weight.reshape(features, *shape))

    def program(x: Any, query: Any, key: Any, value: Any, output: Any, *other: Any) -> Any:
        of = other[0] if other else x
        weights = {"q": query, "k": key, "v": value}
        if block.tie != "apart":
            weights = {name: query if widths[name] == widths["q"] else own for name, own in weights.items()}
        turned = {"keys turned": "k", "values turned": "v", "queries turned": "q"}.get(block.tie, "")
        if turned and widths[turned] == features:
            weights[turned] = weights[turned].T
        q, v = side("q", x, weights["q"]), side("v", of, weights["v"])
        k = side("k", of.swapaxes(1, 2) if turned_x else of, weights["k"])
        scores = masked(case, np.einsum(f"{layout.q},{layout.k}->{layout.scores}", q, k), mask, further)
        powers = np.exp(scores - scores.max(axis, keepdims=True))
        seen = np.einsum(f"{layout.scores},{layout.v}->{layout.out}", powers / powers.sum(axis, keepdims=True), v)
        merged = [axis for axis in layout.out if axis not in "bi"]
        shape = [case.extents[axis] for axis in merged]
        return np.einsum(f"{layout.out},{''.join(merged)}o->bio", seen, output.reshape(*shape, 5))

    result = math.prod(case.shape("".join(axis for axis in layout.out if axis not in "bi")))
    shapes = [(case.extents["b"], case.extents["i"], features), *((features, width) for width in widths.values())]
    shapes += [(result, 5)] + ([(case.extents["b"], case.extents["j"], features)] if context else [])
    drawn = [random.standard_normal(shape) / (math.sqrt(shape[0]) if len(shape) == 2 else 1) for shape in shapes]
    arrays = [array.astype(numpy_dtype(case.dtype)) for array in drawn]
    specs = [f"{case.dtype}[{','.join(map(str, shape))}]" for shape in shapes]
    return trace(program, *specs), arrays


def agrees(block: Block) -> int:
    """Runs what home offers for the whole block; says whether there is one."""
    tape, arrays = recorded(block)
    chosen = ("linear", "attention", "multi_head_attention")
    return taken_alike(block.case, tape, arrays, chosen, 4 * TOLERANCE[block.case.dtype])


def blocks(name: str, every: int) -> list[Block]:
    """Crosses extents, ties, pairs of axes, tables and ways to use them, and deals dtypes out; takes so many-th ones."""
    layout, found = LAYOUTS[name], []
    start = 3 * HEADS.index(name)
    crossed = product(EXTENTS, TIES, permutations(layout.scores, 2), TABLES, KINDS, (False, True))
    for number, (of, tie, axes, table, kind, two) in enumerate(crossed, start):
        is_plain = axes == ("i", "j") and table in ("triangle", "everything") and kind == "keeps" and not two
        if number % every == 0 or is_plain:
            dtype = ("f32", "f32", "f64", "f32", "f16", "f32", "bf16")[number % 7]
            found.append(Block(Case(layout, EXTENTS[of], axes, table, kind, True, dtype), tie, two))
    return found


def check(cases: list[Block]) -> None:
    """Runs blocks, of which most must be recognised as a whole."""
    offered = sum(agrees(block) for block in cases)
    assert offered >= 0.75 * len(cases), (offered, len(cases))


@pytest.mark.parametrize("name", HEADS)
def test_a_block_is_what_was_recorded(name: str) -> None:
    check(blocks(name, 997))


@pytest.mark.conformance
@pytest.mark.parametrize("name", HEADS)
def test_a_block_is_what_was_recorded_everywhere(name: str) -> None:
    check(blocks(name, 31))
