"""The benchmarks' workloads: every framework computes the program that topos records. Small sizes; no time is asserted."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.workloads import catalog, jax_form, onnx_form, topos_form, torch_form
from topos_core.run.bench.child import error_of
from topos_core.run.interpreter import interpret
from topos_core.run.widened import widen_array, widened

SMALL = {
    "ew8": {"size": 1000},
    "gelu_tanh": {"size": 1000, "approximate": "tanh"},
    "odd_softmax": {"shape": (7, 33)},
    "odd_layernorm": {"shape": (7, 3, 17)},
    "mse": {"size": 1000},
    "odd_linear": {"shape": (7, 3), "steps": 13, "out": 21},
    "odd_conv3": catalog.convolution(2, 3, (9, 11), 5, 3, 1, (1, 0, 2, 1)),
    "odd_dilated": catalog.convolution(1, 3, (11, 9), 5, 3, 2, (2, 2, 2, 2), dilation=2),
    "dwpw": {"channels": 6, "extents": (9, 7)},
    "maxpool": catalog.pool(1, 3, (11, 9), False),
    "avgpool": catalog.pool(1, 3, (11, 9), True),
    "odd_attnc": catalog.attention(2, 3, 11, 6, True),
    "odd_bn": {"shape": (7, 5, 3, 4)},
    "bn2d": {"shape": (9, 5)},
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Gives every framework the small sizes by the workloads' own names."""
    known = {name: replace(catalog.workloads()[name], options=options) for name, options in SMALL.items()}
    for module in (topos_form, torch_form, jax_form, onnx_form):
        monkeypatch.setattr(module, "workloads", lambda: known)
    return known


def check(name, make, small, tmp_path):
    tape, inputs = topos_form.traced(small[name])
    exact = interpret(widened(tape), [widen_array(each) for each in inputs])
    runner = make(tmp_path, 1, name)
    error = error_of(runner.arrays(runner.call()), exact)
    assert error["relative"] < 2e-5


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("make", [topos_form.home, topos_form.recorded], ids=["home", "recorded"])
def test_topos_gives_the_program_in_float64(name, make, small, tmp_path):
    check(name, make, small, tmp_path)


@pytest.mark.parametrize("name", SMALL)
def test_torch_computes_what_topos_records(name, small, tmp_path):
    pytest.importorskip("torch")
    grad = torch_grad()
    check(name, torch_form.runner, small, tmp_path)
    torch_grad(grad)


@pytest.mark.parametrize("name", SMALL)
def test_jax_computes_what_topos_records(name, small, tmp_path):
    pytest.importorskip("jax")
    check(name, jax_form.runner, small, tmp_path)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("make", [onnx_form.onnxruntime, onnx_form.openvino], ids=["onnxruntime", "openvino"])
def test_onnx_graphs_compute_what_topos_records(name, make, small, tmp_path):
    pytest.importorskip("onnxruntime" if make is onnx_form.onnxruntime else "openvino")
    check(name, make, small, tmp_path)


def test_images_may_lie_channels_last(small, tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("jax")
    grad = torch_grad()
    for make in (torch_form.runner, jax_form.runner):
        check("odd_conv3", lambda *given, make=make: make(*given, channels_last=True), small, tmp_path)
        with pytest.raises(ValueError, match="makes no difference here"):
            make(tmp_path, 1, "odd_softmax", channels_last=True)
    torch_grad(grad)


def torch_grad(back=None):
    """Gives torch's setting, and puts it back: a contender's process is its own, this one is not."""
    import torch

    before = torch.is_grad_enabled()
    if back is not None:
        torch.set_grad_enabled(back)
    return before


def test_every_workload_has_arrays_and_a_form_everywhere():
    for name, workload in catalog.workloads().items():
        for module in (topos_form, torch_form, jax_form, onnx_form):
            assert callable(getattr(module, workload.kind)), name
    assert np.array_equal(catalog.drawn(3, 4), catalog.drawn(3, 4))
    assert sum(workload.bar is None for workload in catalog.workloads().values()) == 10
