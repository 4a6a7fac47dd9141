"""Keys of regions: what comes or goes with a request renames no other region."""

from __future__ import annotations

from typing import Any

import numpy as np

import topos_core as tp
from topos_core import api
from topos_core.document.changes import changes
from topos_core.plan.request import Request

LAYERS = 6


def layers(x: Any, w: Any) -> Any:
    for _ in range(LAYERS):
        d = x - x.mean(-1, keepdims=True)
        x = np.maximum(d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) @ w, 0)
    return x


def test_a_value_observed_in_the_first_layer_renames_no_region_of_the_others():
    tape = tp.trace(layers, "f32[64,64]", "f32[64,64]")
    planner = api.planner(tape)

    def document(request: Request) -> dict[str, Any]:
        return api.Plan(planner.plan(request), planner, {}).document(target="model.py:layers", curve=False)

    plain = document(Request(machine="reference", cost="always"))
    first = min(
        (r for r in plain["regions"] if r["verdict"] == "taken" and len(r["computing"]) > 2), key=lambda r: r["root"]
    )
    asked = document(Request(machine="reference", cost="always", observe=(first["computing"][1],)))
    keys = {region["id"]: (region["key"], region["occurrence"]) for region in plain["regions"]}
    assert all(keys[r["id"]] == (r["key"], r["occurrence"]) for r in asked["regions"] if r["id"] in keys)
    assert len({region["key"] for region in asked["regions"]}) == len(asked["regions"])
    assert len(changes(plain, asked)["changed"]) <= 6
