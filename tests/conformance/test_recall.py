"""Every layer of a real model is found again, or told why not; no region stands where no such layer is."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from tests.conformance.drawn import drawn
from tests.conformance.torch_models.recall import KINDS, NEEDED, UNCOUNTED, recall, table
from tests.conformance.torch_models.zoo import models
from topos_core.matching.catalog import patterns

MODELS = {model.name: model for model in models()}
SHARE_OF_CI = 16  # one small model in so many
WITHOUT_LAYERS = frozenset(("LSTMCell loop",))
"""Models of a cell only: its products and sigmoids are none of the layers that are counted."""


def check(row: dict[str, Any]) -> None:
    print(table([row]))
    assert (row["lost"], row["false"]) == ([], []), table([row], verbose=True)
    assert bool(row["counts"]) == (row["model"] not in WITHOUT_LAYERS), row


def test_every_pattern_is_known_to_the_truth() -> None:
    assert set(NEEDED) | UNCOUNTED == set(patterns())
    assert {pattern for kind in KINDS.values() for pattern in kind} <= set(patterns())


@pytest.mark.conformance
@pytest.mark.parametrize("name", MODELS)
def test_no_layer_of_a_model_is_lost_and_no_region_is_false(name: str) -> None:
    check(recall(MODELS[name]))


def test_no_layer_of_models_drawn_by_the_commit_is_lost() -> None:
    for name in drawn((name for name, model in MODELS.items() if model.small), SHARE_OF_CI):
        check(recall(MODELS[name]))
