"""Raises, run by XLA and by the reference interpreter, against the recorded ops; many in one module."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from tests.core.emission.programs import Program, batch_norm, convolution, epilogue, window_reduce
from topos_core.emission.backend import run_reference, run_xla
from topos_core.emission.module import emit_matches
from topos_core.emission.raises.catalog import raises
from topos_core.emission.raises.conv_bn_activation import ACTIVATIONS
from topos_core.emission.syntax import literal
from topos_core.matching.facts import Window
from topos_core.ops.verify import verify
from topos_core.run.interpreter import interpret
from topos_core.tape.type import numpy_dtype

STRIDED = (Window(3, 2, 1, 1, 2), Window(2, 1, 2, 0, 3))
CONVOLUTIONS: Mapping[str, Mapping[str, Any]] = {
    "plain": {},
    "strided, dilated, padded unevenly": {"windows": STRIDED},
    "cropped": {"windows": (Window(3, 1, 1, -1, -2), Window(3, 1, 1, 2, -3))},
    "transposed": {"windows": (Window(3, 1, 1, 2, 2, 2, True), Window(3, 1, 1, 1, 2, 3, True))},
    "grouped": {"groups": 2, "out": 6},
    "depthwise": {"groups": 4, "channels": 1, "out": 4},
    "depthwise with a multiplier": {"groups": 3, "channels": 1, "out": 6, "windows": STRIDED},
    "channels last": {"image": "b01f"},
    "spatial first": {"image": "10fb", "windows": STRIDED},
    "feature before batch": {"kernel_first": True},
    "grouped, feature before batch": {"kernel_first": True, "groups": 2, "out": 6, "windows": STRIDED},
    "one channel, one image, one filter": {"batch": 1, "channels": 1, "out": 1},
    "pointwise": {"windows": (Window(), Window())},
    "one-dimensional": {"extents": (9,), "windows": (Window(3, 2, 1, 1, 1),), "image": "bf0"},
    "three-dimensional": {
        "extents": (4, 5, 3),
        "windows": (Window(2), Window(3, 2, 1, 1, 1), Window(2)),
        "image": "bf012",
    },
    "backwards along one axis": {"windows": (Window(3), Window(3, 1, 1, 0, 0, 1, True))},
    "f64": {"dtype": "f64", "windows": STRIDED},
}
POOLS: Mapping[str, Mapping[str, Any]] = {
    "max": {},
    "min, overlapping, dilated": {"reducer": "min", "windows": (Window(), Window(), Window(2, 1, 2), Window(3, 1))},
    "max padded with -inf": {
        "fill": -np.inf,
        "windows": (Window(), Window(), Window(3, 2, 1, 1, 1), Window(2, 2, 1, 0, 1)),
    },
    "max padded with 0": {"fill": 0.0, "windows": (Window(), Window(), Window(3, 2, 1, 1, 1), Window(2, 2, 1, 0, 1))},
    "max spread with 0": {"fill": 0.0, "windows": (Window(), Window(), Window(2, 1, 1, 1, 0, 2), Window(2))},
    "sum padded with 0": {
        "reducer": "sum",
        "fill": 0.0,
        "windows": (Window(), Window(), Window(2, 1, 1, 1, 0, 2), Window(2)),
    },
    "sum padded with 1": {
        "reducer": "sum",
        "fill": 1.0,
        "windows": (Window(), Window(), Window(2, 1, 1, 1, 0), Window(2)),
    },
    "average": {"reducer": "sum", "average": True, "windows": (Window(), Window(), Window(3, 3), Window(3, 2))},
    "average in f16": {"reducer": "sum", "average": True, "dtype": "f16"},
    "average in bf16": {"reducer": "sum", "average": True, "dtype": "bf16"},
    "average of elements in the image": {
        "reducer": "sum",
        "counted": True,
        "fill": 0.0,
        "windows": (Window(), Window(), Window(3, 2, 1, 1, 1), Window(2, 1, 1, 0, 1)),
    },
    "integers": {"dtype": "i32", "fill": -(2.0**31), "windows": (Window(), Window(), Window(3, 1, 1, 1, 1), Window(2))},
    "axes moved": {"order": (2, 0, 3, 1)},
    "axes moved after an average": {"reducer": "sum", "average": True, "order": (3, 1, 2, 0)},
    "over channels": {"windows": (Window(), Window(2), Window(), Window())},
}
NORMS: Mapping[str, Mapping[str, Any]] = {
    "training": {},
    "training without scale and shift": {"affine": False},
    "training, channels last": {"shape": (3, 4, 5), "roles": "nnc"},
    "training, channels first": {"shape": (3, 4, 5), "roles": "cnn"},
    "training, rows": {"shape": (8, 3), "roles": "nc"},
    "training, two channel axes": {"shape": (4, 2, 3), "roles": "ncc"},
    "training, channel axes apart": {"shape": (2, 4, 3), "roles": "cnc"},
    "training, axes moved": {"shape": (2, 3, 4, 5), "roles": "ncnn", "order": (0, 2, 3, 1)},
    "training, reduced axes swapped": {"shape": (2, 3, 4, 5), "roles": "ncnn", "order": (3, 1, 0, 2)},
    "training in f64": {"dtype": "f64", "epsilon": 2.0**-17},
    "inference": {"training": False},
    "inference without scale and shift": {"training": False, "affine": False},
    "inference, axes moved": {"training": False, "shape": (2, 3, 4, 5), "roles": "ncnn", "order": (2, 3, 0, 1)},
}  # fmt: skip
EPILOGUES: Mapping[str, Mapping[str, Any]] = {
    **{f"bias, {name}": {"bias": True, "activation": name} for name in ACTIVATIONS},
    "norm": {"norm": True},
    "everything": {"bias": True, "norm": True, "residual": True, "activation": "relu"},
    "activation first": {"residual": True, "residual_last": True, "activation": "silu"},
    "in place": {"bias": True, "activation": "relu", "order": (0, 1, 2, 3, 4)},
    "in bf16": {"bias": True, "activation": "gelu_erf", "dtype": "bf16"},
}  # fmt: skip


def check(
    record: Callable[..., Any], cases: Mapping[str, Mapping[str, Any]], backends: Any, tolerance: float = 2e-6
) -> str:
    """Records every case on one tape, emits it with all matches taken, and compares every result."""
    program = Program()
    labels: list[str] = []
    for label, options in cases.items():
        made = record(program, **options)
        program.results.extend(made if isinstance(made, tuple) else (made,))
        labels.extend([label] * (len(program.results) - len(labels)))
    tape = program.tape.tape(*program.results)
    verify(tape)
    text = emit_matches(tape, program.matches)
    rng = np.random.default_rng(0)
    inputs = [numbers(rng, tape.ops[value].type, tape.names[value]) for value in tape.inputs]
    expected = interpret(tape, inputs)
    for run in backends:
        for label, got, want in zip(labels, run(text, inputs), expected, strict=True):
            wide, exact = got.astype(np.float64), want.astype(np.float64)
            share = {2: 2e-2 if want.dtype.kind == "V" else 2e-3}.get(want.dtype.itemsize, tolerance)
            bound = share * max(1.0, float(np.abs(exact[np.isfinite(exact)]).max()))
            assert got.shape == want.shape, label
            np.testing.assert_allclose(wide, exact, rtol=0, atol=bound, err_msg=f"{label} on {run.__name__}")
    return text


def numbers(rng: np.random.Generator, kind: Any, name: str) -> np.ndarray:
    if kind.dtype.startswith("i"):
        return rng.integers(-9, 9, kind.shape).astype(numpy_dtype(kind.dtype))
    drawn = rng.standard_normal(kind.shape)
    return np.asarray(np.abs(drawn) + 0.1 if "variance" in name else drawn).astype(numpy_dtype(kind.dtype))


def test_convolutions_agree_and_each_is_one_op():
    text = check(convolution, CONVOLUTIONS, (run_xla, run_reference))
    assert text.count("stablehlo.convolution(") == len(CONVOLUTIONS)
    assert not re.search(r"stablehlo\.(gather|slice|dot_general|pad) ", text)


def test_window_reductions_agree_and_each_is_one_op():
    text = check(window_reduce, POOLS, (run_xla, run_reference))
    assert text.count('"stablehlo.reduce_window"') == len(POOLS)


def test_a_pad_stays_an_op_only_where_its_fill_is_not_what_the_reduction_starts_from():
    text = check(window_reduce, POOLS, ())
    padded = [label for label in POOLS if label.startswith(("max padded with 0", "max spread", "sum padded with 1"))]
    assert text.count("stablehlo.pad ") == len(padded)


def test_batch_norms_agree_on_xla_and_each_is_one_op():
    text = check(batch_norm, NORMS, (run_xla,), tolerance=2e-5)
    training = sum(options.get("training", True) for options in NORMS.values())
    assert text.count('"stablehlo.batch_norm_training"') == training
    assert text.count('"stablehlo.batch_norm_inference"') == len(NORMS) - training


def test_results_put_batch_before_feature():
    text = check(convolution, CONVOLUTIONS, ())
    orders = re.findall(r"->\[([^\]]*)\], window", text)
    assert len(orders) == len(CONVOLUTIONS)
    assert all(order.split(", ").index("b") < order.split(", ").index("f") for order in orders)


def test_a_named_result_that_is_read_before_the_root_comes_after_the_norm():
    text = check(batch_norm, {"early": {"early": True}}, (run_xla,), tolerance=2e-5)
    assert text.index("batch_norm_training") < text.index("stablehlo.add")


def test_epilogues_agree_and_each_is_one_convolution():
    text = check(epilogue, EPILOGUES, (run_xla,), tolerance=2e-5)
    assert text.count("stablehlo.convolution(") == len(EPILOGUES)
    assert text.count('"stablehlo.batch_norm_inference"') == sum(
        options.get("norm", False) for options in EPILOGUES.values()
    )


@pytest.mark.parametrize(("epsilon", "text"), [(1e-5, "1.0e-05"), (0.001, "0.001"), (1.0, "1.0")])
def test_epsilons_are_decimals_that_the_parser_takes(epsilon, text):
    assert literal(epsilon, "f32") == text


def test_every_raise_is_found():
    assert set(raises()) == {
        "batch_norm_inference",
        "batch_norm_training",
        "conv_bn_activation",
        "convolution",
        "window_reduce",
    }
