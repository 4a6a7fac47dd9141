"""What sentences call a value and an op: as the program does, where it says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import topos_core as tp
from topos_core import nn
from topos_core.document.phrases import traffic
from topos_core.document.places import Places, _called, written
from topos_core.plan.decision import Number

SPECS = {"image": "f32[2,16,32,32]", "weight": "f32[32,16,3,3]"}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("torch.relu(self.bn1(self.conv1(x)))", "torch.relu"),
        ("self.layers[3].act(\n    x\n)", "self.layers[3].act"),
        ("(a + b).sum(axis=0)", "sum"),
        ("make(act)(x)", None),
        ("a + relu(b)", None),
        ("relu(b", None),
        ("self." + "longer" * 8 + ".relu(x)", "relu"),
        ("", None),
    ],
)
def test_an_expression_is_called_by_the_function_that_it_calls(text: str, name: str | None) -> None:
    assert _called(text) == name


def test_advice_names_the_function_that_the_program_calls() -> None:
    def hidden(image: Any, weight: Any) -> Any:
        y = nn.conv2d(image, weight)
        tp.observe(y, "pre")
        return nn.relu(y + np.float32(0.25) * np.ones((1, 32, 1, 1), np.float32))

    plan = tp.plan(tp.trace(hidden, **SPECS), machine="reference")
    places = Places(plan.tape)
    (root,) = plan.tape.results
    assert plan.tape.ops[root].name == "maximum"
    assert places.called(root) == f"`nn.relu` at {written(places.value(root))}"
    assert places.op(root) == "`nn.relu`"
    told = [line for region in plan.document()["regions"] for line in (region["action"] or "", *region["details"])]
    assert not [line for line in told if "the maximum" in line]


def test_an_op_that_calls_nothing_keeps_its_name() -> None:
    plan = tp.plan(tp.trace(lambda x: x * 2 + 1, tp.f32[4]), machine="reference")
    places = Places(plan.tape)
    assert [places.op(value) for value in plan.tape.results] == ["`add`"]


def test_traffic_that_rises_says_where() -> None:
    def size(value: int) -> Number:
        return Number(value, "byte", "counted")

    assert traffic(size(4096), size(1024), size(-2048), size(-1024)) == "moves 1 KiB instead of 4 KiB (counted)"
    told = traffic(size(1024), size(4096), size(4096), size(-1024))
    assert told == "moves 4 KiB instead of 1 KiB (counted): it reads 4 KiB more, which its predicted time counts"
    assert "it reads 2 KiB more and writes 1 KiB more, which" in traffic(size(1024), size(4096), size(2048), size(1024))
