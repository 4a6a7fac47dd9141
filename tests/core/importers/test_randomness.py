"""Numbers that NumPy draws while torch or JAX trace a program are frozen, and noted; numbers that the frameworks draw are ops."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from topos_core.importers.imported import trace

HELPER = ModuleType("drawing_helper")
HELPER.__file__ = "/project/drawing_helper.py"
HELPER.RNG = np.random.default_rng(0)  # type: ignore[attr-defined]
HELPER.OLD = np.random.RandomState(0)  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def helper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "drawing_helper", HELPER)


def draws() -> dict[str, Any]:
    inner = np.random.default_rng(1)
    return {
        "global": lambda: np.random.rand(4),
        "made": lambda: np.random.default_rng(0).random(4),
        "another module": lambda: HELPER.RNG.random(4),  # type: ignore[attr-defined]
        "an old one": lambda: HELPER.OLD.rand(4),  # type: ignore[attr-defined]
        "a closure": (lambda: inner.random(4)),
    }


@pytest.mark.parametrize("name", draws())
def test_jax_notes_what_is_frozen(name: str) -> None:
    jnp = pytest.importorskip("jax.numpy")
    draw = draws()[name]
    if name == "a closure":
        inner = draw.__closure__[0].cell_contents
        tape = trace(lambda x: jnp.sin(x) + inner.random(4).astype(np.float32), "f32[4]")
    else:
        tape = trace(lambda x: jnp.sin(x) + draw().astype(np.float32), "f32[4]")
    assert [note.code for note in tape.notes] == ["TP702"]


@pytest.mark.parametrize("name", ["global", "made", "another module"])
def test_torch_notes_what_is_frozen(name: str) -> None:
    torch = pytest.importorskip("torch")
    draw = draws()[name]

    class Net(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            return x + torch.from_numpy(draw().astype(np.float32))

    assert [note.code for note in trace(Net(), "f32[4]").notes] == ["TP702"]


def test_draws_of_the_frameworks_are_no_frozen_numbers() -> None:
    jax = pytest.importorskip("jax")
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)
            self.scale = torch.nn.Parameter(torch.from_numpy(np.random.rand(4).astype(np.float32)))

        def forward(self, x: Any) -> Any:
            return self.layer(x) * self.scale + torch.rand(4)

    assert not trace(Net, "f32[4]").notes
    assert not trace(lambda x: jax.numpy.sin(x) + jax.random.normal(jax.random.key(0), (4,)), "f32[4]").notes
