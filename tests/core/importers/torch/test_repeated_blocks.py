"""Identical blocks of a module are told once with their number; a block that differs is told by its own name."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import topos_core as tp
from topos_core.document.formats.text import render_plan

NET = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.up = nn.Linear(64, 128)
        self.down = nn.Linear(128, 64)
        self.activation = activation

    def forward(self, x):
        return x + self.down(self.activation(self.up(x)))


# topos: entry inputs=f32[4,64]
def decoder():
    return nn.Sequential(*[Block(nn.Tanh() if k == 5 else nn.SiLU()) for k in range(8)])
"""


def test_one_odd_block_of_eight_is_told_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "torch_repeated.py"
    path.write_text(NET)
    document = tp.plan(tp.load(f"{path}:decoder", "f32[4,64]"), machine="reference", cost="always").document()
    found = [each for each in document["regions"] if each["pattern"] == "linear_bias_activation"]
    folds: dict[str, list[str]] = {}
    for each in found:
        folds.setdefault(each["fold"], []).append(each["scope"][0])
    assert sorted(folds.values(), key=len) == [["5"], ["0", "1", "2", "3", "4", "6", "7"]]
    lines = render_plan(document).splitlines()
    told = {
        line.split("linear bias activation")[1].strip(): lines[at + 1]
        for at, line in enumerate(lines)
        if "linear bias activation" in line
    }
    assert sorted(told) == ["", "x7"]
    assert " in 5." in told[""]
