"""Small networks through topos, JAX, ONNX and torch: the same regions are taken on every route."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import numpy as np
import pytest

import topos_core as tp
from tests.core.importers.routes import convolutional, decoder, encoder
from topos_core.importers.imported import record
from topos_core.matching.facts import EpilogueFacts
from topos_core.matching.match import Match
from topos_core.matching.order import LAST
from topos_core.run.interpreter import interpret
from topos_core.tape.tape import Tape

NETWORKS = {
    convolutional: {"conv_bn_activation", "window_reduce", "linear_bias_activation", "linear", "softmax"},
    encoder: {"layer_norm", "add_norm", "multi_head_attention", "linear_bias_activation", "linear", "softmax"},
    decoder: {"rms_norm", "add_norm", "multi_head_attention", "gated_mlp"},
}
"""Patterns that a network holds at least, wherever it comes from; where a wider region takes a norm in, its own is not listed."""
ROUTES = ("jax", "onnx", "torch")


def shape(spec: str) -> list[int]:
    return [int(each) for each in re.findall(r"\d+", spec.partition("[")[2].partition("]")[0])]


@cache
def recorded(network: ModuleType, route: str) -> Tape:
    if route != "topos":
        pytest.importorskip(route)
    if route != "onnx":
        return record(
            getattr(network, route), tuple(network.SPECS.values()), framework=None if route == "topos" else route
        )
    from tests.core.importers.onnx.models import model
    from tests.core.importers.onnx.models import record as read

    nodes, extents = network.onnx()
    inputs = [(name, "f32", shape(spec)) for name, spec in network.SPECS.items()]
    with TemporaryDirectory() as folder:
        return read(model(nodes, inputs, [("out", "f32", extents)]), Path(folder))


def activation(match: Match) -> str:
    facts = match.facts
    return facts.activation if isinstance(facts, EpilogueFacts) else getattr(facts, "options", {}).get("activation", "")


def taken(tape: Tape, cost: str) -> list[tuple[str, int, str]]:
    """Lists the taken regions: pattern, elements of the result, activation.

    What is searched last is left out: the ops that no formula names, such as those of a causal mask, are each framework's own.
    """
    plan = tp.plan(tape, cost=cost, machine="reference")
    return sorted(
        (each.match.pattern, tape.type_of(each.match.root).size, activation(each.match))
        for each in plan.taken
        if each.match.pattern not in LAST
    )


@pytest.mark.parametrize("cost", ["always", "model"])
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.__name__.rpartition(".")[2])
def test_a_network_has_the_same_regions_on_every_route(network, route, cost):
    wanted = taken(recorded(network, "topos"), cost)
    assert NETWORKS[network] <= {pattern for pattern, _, _ in wanted} or cost == "model"
    assert taken(recorded(network, route), cost) == wanted


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.__name__.rpartition(".")[2])
def test_a_network_computes_the_same_on_every_route(network, route):
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(0.1, 1, shape(spec)).astype(np.float32) * 0.2 for spec in network.SPECS.values()]
    (found,), (wanted,) = (interpret(recorded(network, each), inputs) for each in (route, "topos"))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
