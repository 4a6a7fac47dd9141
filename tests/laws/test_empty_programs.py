"""Every pattern's examples with one extent of the first input set to 0: planned, run, and equal to the interpreter."""

from __future__ import annotations

import re

import numpy as np
import pytest

import topos_core as tp
from topos_core.errors import ToposError
from topos_core.matching.catalog import patterns
from topos_core.run.interpreter import interpret
from topos_core.tape.type import numpy_dtype

CASES = [(p.identifier, e, axis) for p in patterns().values() for e in p.examples for axis in range(3)]


@pytest.mark.parametrize(("identifier", "example", "axis"), CASES, ids=lambda v: str(getattr(v, "name", v)))
def test_an_empty_extent_runs_as_recorded(identifier, example, axis):
    specs = dict(example.specs)
    name, spec = next(iter(specs.items()))
    extents = re.search(r"\[(.*)\]", spec)[1].split(",")
    if axis >= len(extents):
        return
    specs[name] = spec.replace(f"[{','.join(extents)}]", f"[{','.join([*extents[:axis], '0', *extents[axis + 1 :]])}]")
    try:
        tape = tp.trace(example.function, **specs)
    except (ToposError, ValueError, ZeroDivisionError):
        return  # the program has no meaning for this extent
    arrays = [np.ones(tape.ops[v].type.shape, numpy_dtype(tape.ops[v].type.dtype)) for v in tape.inputs]
    arrays = [array * 0 if array.dtype.kind in "iu" else array for array in arrays]
    try:
        expected = interpret(tape, arrays)
    except (ToposError, ValueError):
        return  # NumPy has no answer either: the largest of nothing
    plan = tp.plan(tape, cost="always")
    got = plan.run(*arrays)
    leaves = got if isinstance(got, (tuple, list)) else [got]
    for mine, recorded in zip(leaves, expected, strict=True):
        np.testing.assert_allclose(mine, recorded, rtol=1e-4, atol=1e-4)
