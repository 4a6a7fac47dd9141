"""Real models of torch: nothing lost, nothing invented, and what small ones compute is what torch computes."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from tests.conformance.torch_models.measure import line, measure
from tests.conformance.torch_models.zoo import models

MODELS = {model.name: model for model in models()}
FOREIGN = {
    "Mixtral, sdpa": {
        "aten.topk",
        "aten.sort",
        "aten.histc",
        "aten.transformers.grouped_mm_fallback",
        "aten.index_put",
    },
    "Mixtral, eager": {
        "aten.topk",
        "aten.sort",
        "aten.histc",
        "aten.transformers.grouped_mm_fallback",
        "aten.index_put",
    },
}


@pytest.mark.conformance
@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_planned_without_readers_and_computes_what_torch_does(name: str) -> None:
    row = measure(MODELS[name])
    print(line(row))
    assert set(row["opaque"]) == FOREIGN.get(name, set())
    assert not any("failed" in note for note in row["notes"])
    assert row["observations"] == {}
    assert row["patterns"]
    if MODELS[name].small and not row["opaque"]:
        assert row["difference"] < 1e-4
        assert row["executed"] < 1e-4
