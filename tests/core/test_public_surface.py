from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import topos_core as tp

HEAVY = ("numba", "torch", "jax", "onnx", "pygls", "fastapi", "networkx", "llvmlite")


def fresh(code: str) -> str:
    """Runs code in a new interpreter and gives what it printed."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("name", tp.__all__)
def test_every_public_name_exists(name: str) -> None:
    assert getattr(tp, name) is not None
    assert name in dir(tp)


def test_importing_loads_no_framework_and_no_part_of_topos() -> None:
    loaded = fresh("import sys, topos_core; print(*sorted(m for m in sys.modules if m.startswith('topos_core')))")
    assert loaded == "topos_core"


def test_tracing_and_planning_load_no_framework() -> None:
    code = (
        "import sys, topos_core as tp\n"
        "tape = tp.trace(lambda x: x.T @ x + 1, tp.f32[4, 4])\n"
        "from topos_core.api import planner\n"
        "planner(tape)\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    assert fresh(code) == "[]"


def test_plan_is_the_function_and_the_package() -> None:
    assert callable(tp.plan)
    assert importlib.import_module("topos_core.plan.request").Request is not None
    code = "import topos_core.plan.request as r, topos_core as tp; print(callable(tp.plan), tp.plan.request is r)"
    assert fresh(code) == "True True"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'topos_core' has no attribute 'fuse'"):
        _ = tp.fuse  # type: ignore[attr-defined]


def test_dtypes_make_specs() -> None:
    assert str(tp.f32[2, 3].type) == "f32[2,3]"
    assert str(tp.bool[4].type) == "bool[4]"
