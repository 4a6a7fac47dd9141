"""What topos emits is read back: every op's lowering, and every example with its raises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jaxlib", reason="jaxlib is not installed")

from tests.core.matching.check import inputs_of
from tests.laws.cases import tape_of
from tests.laws.test_examples_emitted import NAMED
from tests.laws.test_lowering import FAMILIES, agree, family
from topos_core.api import load, plan
from topos_core.emission.module import emit, emitted_results
from topos_core.importers.stablehlo_text.record import record_text
from topos_core.run.interpreter import bind, evaluate, interpret
from topos_core.tape.tape import Tape
from topos_core.tape.type import DTYPE_NAMES

EXAMPLES = Path(__file__).parents[2] / "examples"


def read_back(text: str) -> Tape:
    tape = record_text(text, "/module.mlir")
    foreign = {(op.attributes["foreign"], op.attributes["note"]) for op in tape.ops if op.name == "opaque"}
    assert foreign == set()
    return tape


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPE_NAMES)
@pytest.mark.parametrize("name", FAMILIES)
def test_every_lowering_is_read_back_as_what_it_was(name: str, dtype: str) -> None:
    cases = family(name, dtype, subnormals=True)
    if not cases:
        return
    tape = tape_of(cases)
    inputs: list[Any] = [x for case in cases for x in case.operands]
    again = interpret(read_back(emit(tape)), inputs)
    for case, got, want in zip(cases, again, interpret(tape, inputs), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape), case
        agree(case, got, want)


@pytest.mark.parametrize("target", NAMED)
def test_an_example_is_read_back_and_computes_the_same(target: str) -> None:
    tape = load(str(EXAMPLES / target))
    chosen = plan(tape, consumer="stablehlo", cost="always", machine="reference")
    results = emitted_results(tape, chosen.data.observed)
    inputs = inputs_of(tape, 0)
    wanted = evaluate(tape, bind(tape, inputs), results)
    arguments = [*inputs, *(tape.defaults[value] for value in tape.parameters)]
    for value, got in zip(results, interpret(read_back(chosen.emit_stablehlo()), arguments), strict=True):
        scale = max(1.0, float(np.abs(wanted[value]).max()))
        np.testing.assert_allclose(got, wanted[value], rtol=0, atol=2e-5 * scale, err_msg=f"%{value}")
