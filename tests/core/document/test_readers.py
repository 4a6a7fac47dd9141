"""A region whose inside several people read: each finding names the others, since one that stops gains nothing alone."""

from __future__ import annotations

from typing import Any

import numpy as np

import topos_core as tp
from topos_core import nn

SPECS = {"image": "f32[2,16,32,32]", "weight": "f32[32,16,3,3]"}


def blocked(function: Any) -> list[dict[str, Any]]:
    document = tp.plan(tp.trace(function, **SPECS), machine="reference").document()
    return [finding for finding in document["findings"] if finding["code"] == "TP101"]


def test_two_readers_are_told_of_each_other():
    def twice(image: Any, weight: Any) -> Any:
        y = nn.conv2d(image, weight)
        tp.observe(y, "one")
        tp.observe(y, "two")
        return np.maximum(y, 0)

    first, second = blocked(twice)
    assert second["line"] == first["line"] + 1
    for mine, other in ((first, second), (second, first)):
        place = f"{other['path']}:{other['line']}:{other['column'] + 1}"
        wanted = f"its inside is read at {place} too: the cost ends when all of these readings end"
        assert wanted in mine["details"]
        assert [row["line"] for row in mine["related"] if row["message"] == "its inside is read here too"] == [
            other["line"]
        ]


def test_two_values_that_are_returned_together_are_told_of_each_other():
    def both(image: Any, weight: Any) -> Any:
        windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(2, 3))
        y = np.einsum("bchwij,ocij->bohw", windows, weight)
        return np.maximum(y, 0), y, windows

    assert ["its inside is read at" in " ".join(finding["details"]) for finding in blocked(both)] == [True, True]


def test_one_reader_alone_is_told_of_nobody():
    def once(image: Any, weight: Any) -> Any:
        return np.maximum(tp.observe(nn.conv2d(image, weight), "pre"), 0)

    (finding,) = blocked(once)
    assert "its inside is read at" not in " ".join(finding["details"])
    proposal = next(line for line in finding["details"] if line.endswith("instead: that costs nothing"))
    assert proposal.count(f"{finding['path']}:{finding['line']}") == 1
