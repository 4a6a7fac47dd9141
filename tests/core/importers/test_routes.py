"""One small network through topos, JAX, ONNX and torch: the same regions are taken on every route."""

from pathlib import Path

import numpy as np
import pytest

import topos_core as tp
from topos_core import nn
from topos_core.importers.imported import record

SPECS = ("f32[2,3,8,8]", "f32[8,3,3,3]", "f32[8]", "f32[8,128]", "f32[8]")


def network(x, weight, bias, head, shift):
    hidden = nn.max_pool(nn.relu(nn.conv2d(x, weight, bias, padding=1)), 2)
    return nn.softmax(nn.linear(nn.gelu(hidden.reshape(2, -1)), head, shift))


def through_topos(folder: Path):
    return record(network, SPECS)


def through_jax(folder: Path):
    jax = pytest.importorskip("jax")
    lax, jnp = jax.lax, jax.numpy

    def network(x, weight, bias, head, shift):
        y = jax.nn.relu(lax.conv_general_dilated(x, weight, (1, 1), "SAME") + bias[:, None, None])
        y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID").reshape(2, -1)
        return jax.nn.softmax(jax.nn.gelu(y, approximate=False) @ head.T + shift, axis=-1)

    return record(network, SPECS)


def through_onnx(folder: Path):
    pytest.importorskip("onnx")
    from onnx import helper

    from tests.core.importers.onnx.models import model
    from tests.core.importers.onnx.models import record as read

    nodes = [
        helper.make_node("Conv", ["x", "weight", "bias"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gelu", ["f"], ["g"]),
        helper.make_node("Gemm", ["g", "head", "shift"], ["logits"], transB=1),
        helper.make_node("Softmax", ["logits"], ["y"]),
    ]
    inputs = [
        ("x", "f32", [2, 3, 8, 8]), ("weight", "f32", [8, 3, 3, 3]), ("bias", "f32", [8]), ("head", "f32", [8, 128]),
        ("shift", "f32", [8]),
    ]  # fmt: skip
    return read(model(nodes, inputs, [("y", "f32", [2, 8])], opset=20), folder)


def through_torch(folder: Path):
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional

    def network(x, weight, bias, head, shift):
        y = functional.max_pool2d(torch.relu(functional.conv2d(x, weight, bias, padding=1)), 2).flatten(1)
        return torch.softmax(functional.linear(functional.gelu(y), head, shift), dim=-1)

    return record(network, SPECS)


def taken(tape):
    plan = tp.plan(tape, cost="always", machine="reference")
    return sorted(decision.match.pattern for decision in plan.taken)


@pytest.mark.parametrize("route", [through_jax, through_onnx, through_torch])
def test_a_network_has_the_same_regions_on_every_route(route, tmp_path):
    assert taken(route(tmp_path)) == taken(through_topos(tmp_path)) != []


@pytest.mark.parametrize("route", [through_jax, through_onnx, through_torch])
def test_a_network_computes_the_same_on_every_route(route, tmp_path):
    from topos_core.run.interpreter import interpret

    rng = np.random.default_rng(0)
    tape = through_topos(tmp_path)
    inputs = [rng.standard_normal(tape.type_of(value).shape).astype(np.float32) for value in tape.inputs]
    (result,), (wanted,) = interpret(route(tmp_path), inputs), interpret(tape, inputs)
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-6)
