"""What is proposed instead of a function computes what the function does, and records."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.ndimage
import scipy.special

import topos_core as tp
from tests.core.recording.check import refusal
from topos_core import nn
from topos_core.recording import remedies

SPACE = {"np": np, "nn": nn, "tp": tp, "math": math, "n": np.array([[0], [1], [2]]), "value": 0.5}
RANDOM = np.random.default_rng(3)
X, Y = RANDOM.uniform(0.05, 0.95, (3, 4)), RANDOM.uniform(-0.9, 0.9, (3, 4))
ABOVE_ONE = ("arccosh",)


def softmax(x, y):
    return scipy.special.softmax(x, axis=1)


def logsumexp(x, y):
    return scipy.special.logsumexp(x, axis=1)


def log_softmax(x, y):
    return scipy.special.log_softmax(y, axis=0)


def softmax_of_a_list(x, y):
    return scipy.special.softmax([x, y])


def matrix_power(x, y):
    return scipy.linalg.expm(x @ y.T)


def smoothed(x, y):
    return scipy.ndimage.gaussian_filter(x, 1)


FOREIGN = {
    softmax: ("scipy.special.softmax turns f32[3,4]", "nn.softmax(x, axis=...)"),
    logsumexp: ("scipy.special.logsumexp turns f32[3,4]", "tp.logsumexp(x, axis=...)"),
    log_softmax: ("scipy.special.log_softmax turns f32[3,4]", "nn.log_softmax(x, axis=...)"),
    softmax_of_a_list: ("scipy.special.softmax turns f32[3,4]", "nn.softmax(x, axis=...)"),
    matrix_power: ("scipy.linalg.expm turns f32[3,3]", "compute it outside"),
    smoothed: ("scipy.ndimage.gaussian_filter turns f32[3,4]", "compute it outside"),
}


@pytest.mark.parametrize("function", FOREIGN, ids=lambda function: function.__name__)
def test_a_foreign_function_is_called_by_its_name(function: Any) -> None:
    text, message = refusal(function)
    whose, remedy = FOREIGN[function]
    assert text.startswith("scipy.")
    assert message.startswith(f"{whose} into a plain array")
    assert message.endswith((f"; write {remedy}", f"{remedy} and pass it as an input"))


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_what_is_proposed_for_a_function_is_what_it_computes(name: str) -> None:
    proposed = remedies.of_function("scipy.special", name).removeprefix("write ").replace("...", "1")
    np.testing.assert_allclose(eval(proposed, {**SPACE, "x": Y}), getattr(scipy.special, name)(Y, axis=1), rtol=1e-12)


@pytest.mark.parametrize("name", [k for k, told in remedies._UFUNCS.items() if told.startswith("write ")])
def test_what_is_proposed_for_a_ufunc_is_what_it_computes(name: str) -> None:
    proposed, _, but = remedies.of_ufunc(name).removeprefix("write ").partition(", wh")
    ufunc = getattr(np, name, None) or getattr(scipy.special, name)
    x = X + 1 if name in ABOVE_ONE else X
    places = {"heaviside": [x, 0.5], "ldexp": [x, SPACE["n"]]}.get(name, [x, Y][: ufunc.nin])
    if name in ("modf", "divmod"):
        proposed = proposed.replace(" and ", ", ")
    found = eval(proposed, {**SPACE, "x": x, "y": Y})
    if "sign" not in but:
        np.testing.assert_allclose(found, ufunc(*places), rtol=1e-9)
    recorded = tp.trace(lambda x, y: eval(proposed, {**SPACE, "x": x, "y": y}), x=tp.f64[3, 4], y=tp.f64[3, 4])
    assert len(recorded.ops) > 2


def test_a_foreign_ufunc_that_numpy_has_too_leads_there() -> None:
    assert refusal(lambda x, y: scipy.special.log1p(x))[1].endswith("log1p has no recorded meaning; write np.log1p")
