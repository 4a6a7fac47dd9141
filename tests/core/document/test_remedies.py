"""What ends a block: each fix says what its what-if then shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import topos_core as tp
from tests.core.document.test_fixes import applied
from topos_core.importers.imported import record

SOURCE = """\
import numpy as np
import topos_core as tp


def block(image, weight):
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(2, 3))
    columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(4 * 30 * 30, 16 * 9)
    tp.observe(columns, "columns")
    return np.maximum(columns @ weight.reshape(32, 16 * 9).T, 0)
"""
SHORT = SOURCE.replace(
    "    columns = windows.transpose",
    "    columns = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(2, 3)).transpose",
)
SHAPES = (4, 16, 32, 32), (32, 16, 3, 3)
SPECS = tuple(tp.f32[shape] for shape in SHAPES)


def planned(source: str, path: str = "model.py") -> Any:
    scope: dict[str, Any] = {}
    exec(compile(source, path, "exec"), scope)
    return tp.plan(record(scope["block"], SPECS, sources={path: source}), machine="reference")


def blocked(plan: Any) -> dict[str, Any]:
    (region,) = [one for one in plan.document(target="model.py:block")["regions"] if one["verdict"] == "blocked"]
    return dict(region)


def seconds(plan: Any) -> float:
    return float(plan.document()["totals"]["planned"]["seconds"]["value"])


@pytest.fixture(scope="module")
def plan() -> Any:
    return planned(SOURCE)


def test_a_block_lists_four_kinds_of_fixes(plan: Any) -> None:
    fixes = blocked(plan)["fixes"]
    assert [fix["id"] for fix in fixes] == ["stop", "move", "beside", "debug"]
    assert {(fix["delta"]["unit"], fix["delta"]["basis"]) for fix in fixes} == {("second", "modelled")}
    assert fixes[2]["text"] == "keep observing `columns` and recompute it on the side"


@pytest.mark.parametrize("kind", ["stop", "move", "beside", "debug"])
def test_a_fix_changes_what_it_says(plan: Any, kind: str) -> None:
    region = blocked(plan)
    (fix,) = [one for one in region["fixes"] if one["id"] == kind]
    asks = fix["asks"]
    answer = plan.what_if(ignore=asks["ignore"], beside=asks["beside"], observe=asks["observe"])
    told = {one["key"]: one["verdict"] for one in answer.document()["regions"]}
    assert told[region["key"]] == "taken"
    assert seconds(answer) - seconds(plan) == pytest.approx(fix["delta"]["value"], rel=1e-6)


def test_recomputing_costs_what_the_recorded_ops_take(plan: Any) -> None:
    stop, _, beside, _ = (fix["delta"]["value"] for fix in blocked(plan)["fixes"])
    assert stop < beside


def test_what_is_recomputed_beside_a_region_is_what_was_observed(plan: Any) -> None:
    rng = np.random.default_rng(5)
    inputs = [rng.standard_normal(shape).astype("f4") for shape in SHAPES]
    answer = plan.what_if(beside=["columns"])
    assert len(answer.taken) > 0
    result, observed = answer.run(*inputs, observed=True)
    expected, windows = plan.run(*inputs, observed=True)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(observed["columns"], windows["columns"])


def test_what_is_returned_can_only_be_recomputed() -> None:
    returned = SOURCE.replace('    tp.observe(columns, "columns")\n', "").replace("return np.", "return columns, np.")
    fixes = blocked(planned(returned))["fixes"]
    assert [fix["id"] for fix in fixes] == ["beside"]


def test_an_observation_for_debug_runs_alone_is_an_edit(plan: Any) -> None:
    fix = blocked(plan)["fixes"][3]
    mended = applied(SOURCE, fix["edits"])
    assert '    if __debug__:\n        tp.observe(columns, "columns")\n' in mended
    assert compile(mended, "model.py", "exec", optimize=1)


def test_an_expression_of_its_own_is_an_edit_where_one_assignment_makes_all_of_it(plan: Any) -> None:
    assert blocked(plan)["fixes"][2]["edits"] == []  # of two assignments
    fix = blocked(planned(SHORT))["fixes"][2]
    mended = applied(SHORT, fix["edits"])
    assert [one["verdict"] for one in planned(mended).document()["regions"] if one["pattern"].startswith("conv")] == [
        "taken"
    ]


def test_the_totals_tell_what_a_run_would_take_if_nothing_that_blocks_were_observed(plan: Any) -> None:
    totals = plan.document()["totals"]
    free = plan.what_if(ignore=["columns"])
    assert totals["unobserved"]["seconds"]["value"] == seconds(free)
    assert "unobserved" not in free.document()["totals"]
