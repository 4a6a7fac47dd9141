"""The loop nest that is shown is the computation that runs: its text is carried out line by line and compared with the recorded ops."""

import math
import re

import numpy as np
import pytest

import topos_core as tp
from topos_core.kernels.expressions.nest import loop_nest

_TYPES = {"i32": np.int32, "f64": np.float64, "f32": np.float32}
_COMPARE = {"gt": np.greater, "lt": np.less, "ge": np.greater_equal}


def run(lines, arrays):
    """Carries the lines out in Python; `arrays` maps a value to what is read or written, as it is in memory."""
    extents: dict[str, int] = {}
    program = []
    for line in lines:
        text = line.text.split("//")[0].rstrip()
        if loop := re.fullmatch(r"( *)for (\w+) in 0..(\d+) \{", text):
            extents[loop[2]] = int(loop[3])
            program.append(f"{loop[1]}for {loop[2]} in range({loop[3]}):")
        elif text.strip() not in ("}", ""):
            text = re.sub(r" (?:in|to) (f64|f32|i\d+)$", "", text)
            text = re.sub(r"= lowest$", "= -inf", text)
            text = re.sub(r"(\w+)\[(\w+)\]\((?=.)", r"\1_\2(", text)
            text = re.sub(r"%(\d+)\[([^\]]*)\]", r"at(\1, '\2')[\2 or ()]", text)
            text = re.sub(r"\[ or \(\)\]", "[()]", re.sub(r"\[(\w[\w, ]*) or \(\)\]", r"[\1]", text))
            program.append(re.sub(r"%(\d+)", r"local_\1", text))

    def at(value, names):
        return arrays[value].reshape([extents[name] for name in names.split(", ") if name])

    known = {
        "at": at, "inf": math.inf, "abs": abs, "max": max, "min": min, "maximum": max, "select": lambda c, a, b: a if c else b,
        **{name: getattr(np, name) for name in ("sqrt", "tanh", "exp")},
        **{f"compare_{kind}": function for kind, function in _COMPARE.items()},
        **{f"cast_{name}": kind for name, kind in _TYPES.items()},
    }  # fmt: skip
    exec("\n".join(program), known)


@pytest.mark.parametrize(
    ("model", "specs"),
    [
        pytest.param(lambda x, b: np.sqrt(np.abs(x * b + 0.5)) - b, (tp.f32[6, 40], tp.f32[40]), id="a chain"),
        pytest.param(lambda x, b: np.sqrt(np.abs(x * b[:, None] + 0.5)), (tp.f32[6, 40], tp.f32[6]), id="a column"),
        pytest.param(lambda x, b: np.tanh(x * b).sum(axis=-1) * 2.0 + 1.0, (tp.f32[6, 40], tp.f32[40]), id="a row reduced"),
        pytest.param(lambda x: np.exp(x - np.max(x, axis=0, keepdims=True)) * 3.0, (tp.f32[6, 40],), id="columns in two passes"),
        pytest.param(lambda x: (x * 2.0).sum(axis=(0, 2)), (tp.f32[6, 5, 40],), id="outer and inner axes reduced"),
        pytest.param(lambda x: (np.tanh(x) * 2.0, np.exp(x) + 1.0), (tp.f32[8, 8],), id="two results"),
        pytest.param(lambda x: np.where(x > 0, x.astype(np.int32), 3) * 2, (tp.f32[8, 8],), id="a cast and a comparison"),
        pytest.param(lambda x, y: np.tanh(x.T) * y + 1.0, (tp.f32[5, 7], tp.f32[7, 5]), id="a transposed operand"),
    ],
)  # fmt: skip
def test_the_shown_loops_compute_what_was_recorded(model, specs):
    plan = tp.plan(tp.trace(model, *specs), cost="always")
    (decision,) = plan.taken
    match = decision.match
    generator = np.random.default_rng(0)
    inputs = [
        generator.standard_normal(plan.tape.ops[value].type.shape).astype(np.float32) for value in plan.tape.inputs
    ]
    expected = model(*inputs)
    results = expected if isinstance(expected, tuple) else (expected,)
    arrays = dict(zip(plan.tape.inputs, inputs, strict=True))
    produced = [(value, np.full_like(result, 7)) for value, result in zip(plan.tape.results, results, strict=True)]
    arrays |= dict(produced)
    lines = loop_nest(plan.tape, match)
    for line in lines:
        if copied := re.fullmatch(r"// %(\d+) is read from a copy whose axes follow the loops", line.text):
            arrays[int(copied[1])] = np.ascontiguousarray(arrays[int(copied[1])].T)
    run(lines, arrays)
    for (_, array), result in zip(produced, results, strict=True):
        np.testing.assert_allclose(array, result, rtol=1e-5, atol=1e-6)


def test_every_line_is_about_an_op_of_the_region():
    plan = tp.plan(tp.trace(lambda x, b: np.tanh(x * b).sum(axis=-1) * 2.0, tp.f32[6, 40], tp.f32[40]), cost="always")
    (decision,) = plan.taken
    inside = decision.match.computing | decision.match.produced
    lines = loop_nest(plan.tape, decision.match)
    assert {line.value for line in lines} == inside
    assert lines[0].text == "for a in 0..6 {  // dealt to threads"
