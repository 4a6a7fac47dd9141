from dataclasses import replace

import numpy as np
import pytest

from tests.core.kernels.check import close, run
from tests.core.kernels.convolutions import facts, layout, positions
from tests.support.tapes import TapeBuilder
from topos_core.kernels.convolution.activations import CLAMPED
from topos_core.kernels.vocabulary.transcendental import ACTIVATIONS
from topos_core.matching.facts import EpilogueFacts, Window
from topos_core.matching.match import Match
from topos_core.patterns.conv_bn_activation import evaluate
from topos_core.tape.type import numpy_dtype

NAMES = [*CLAMPED, *(name for name in ACTIVATIONS if name not in (*CLAMPED, "exp", "erf"))]
WINDOWS = (Window(3, low=1, high=1), Window(3, 2, low=1, high=1))


def described(rows, activation, residual=None, last_axis=False, norm=None, bias=False, steps=()):
    """Describes a convolution of 3 channels with `rows` results, channels first or last."""
    convolution = facts(2, 1, 3, rows, (7, 21), WINDOWS)
    out = [positions(e, w) for e, w in zip((7, 21), WINDOWS, strict=True)]
    result = layout((2, *out, rows), "b01f") if last_axis else layout((2, rows, *out), "bf01")
    return EpilogueFacts(
        replace(convolution, result=result),
        result,
        bias,
        norm,
        residual is not None,
        activation,
        residual == "last",
        steps,
    )


def check(described, dtype="f32", known=False, threads=1, bound=None):
    random = np.random.default_rng(0)
    channels = described.convolution.out_channels
    shapes = {"x": described.convolution.image.shape, "kernel": described.convolution.kernel.shape}
    shapes |= {"bias": (channels,)} if described.bias else {}
    if described.norm is not None:
        shapes |= dict.fromkeys(("bn_mean", "bn_variance", "bn_scale", "bn_shift"), (channels,))
    shapes |= {f"step{k}": (channels,) for k in range(len(described.steps))}
    shapes |= {"residual": described.result.shape} if described.residual else {}
    builder = TapeBuilder()
    kind = numpy_dtype(dtype)
    arrays, bindings = {}, {}
    for name, shape in shapes.items():
        values = random.standard_normal(shape)
        positive = "variance" in name or name.startswith("step")
        arrays[name] = (np.abs(values) + 0.5 if positive else values).astype(kind)
        bindings[name] = builder.input(name, f"{dtype}[{','.join(map(str, shape))}]")
    root = builder.input("result", f"{dtype}[{','.join(map(str, described.result.shape))}]")
    match = Match("conv_bn_activation", root, bindings, frozenset(), frozenset({root}), {}, described)
    constants = {bindings[n]: a for n, a in arrays.items() if n not in ("x", "residual")} if known else {}
    exact = evaluate(described, {name: array.astype(np.float64) for name, array in arrays.items()})["root"]
    close(run(builder.tape(root), match, arrays, constants, threads), exact, dtype, bound or 8.0)


@pytest.mark.parametrize("activation", NAMES)
@pytest.mark.parametrize("residual", [None, "first", "last"])
@pytest.mark.parametrize("last_axis", [False, True])
def test_every_activation_with_and_without_a_residual_in_both_layouts(activation, residual, last_axis):
    check(described(9, activation, residual, last_axis))


@pytest.mark.parametrize("rows", [1, 2, 4, 5, 8, 13])
@pytest.mark.parametrize("last_axis", [False, True])
def test_tails_of_rows(rows, last_axis):
    check(described(rows, "relu", "first", last_axis))
    check(described(rows, "gelu_erf", None, last_axis))


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("norm", "steps"), [(None, ()), (1e-5, ()), (None, ("sub", "div", "mul", "add"))])
def test_vectors_are_folded_beforehand_or_in_the_run(known, bias, norm, steps):
    check(described(6, "relu6", "first", norm=norm, bias=bias, steps=steps), known=known)


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16"])
def test_other_floats(dtype):
    check(described(6, "silu", "first", bias=True), dtype)
    check(described(6, "relu", "last", last_axis=True), dtype)


def test_threads_agree():
    for threads in (2, 4):
        check(described(9, "gelu_tanh", "first", bias=True), threads=threads)
