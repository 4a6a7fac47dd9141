"""What a release recognises, kept in a file beside the models."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.fusion.cases import case
from topos_core.cli.main import main

MODEL = """\
import numpy as np
import topos_core as tp


@tp.model(x=tp.i8[8, 16], scale=tp.f32[16], weight=tp.f32[16, 4])
def layer(x, scale, weight):
    return {product}
"""


@case(55)
def test_a_list_of_regions_is_a_file_and_a_region_that_is_lost_fails_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(product: str, *arguments: str) -> tuple[int, str]:
        (tmp_path / "model.py").write_text(MODEL.format(product=product))
        status = main(["explain", "--corpus", "model.py", *arguments])
        return status, capsys.readouterr().out

    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.topos]\nseconds = 60\n")
    recorded = "(x.astype(np.float32) * scale) @ weight"
    assert told(recorded, "--save", "regions.json")[0] == 0
    assert told(f"({recorded})", "--against", "regions.json")[0] == 0
    assert told("np.einsum('bi,io->bo', x.astype(np.float32) * scale, weight)", "--against", "regions.json")[0] == 0
    status, text = told("((x * scale)[:, :, None] + weight).max(axis=1)", "--against", "regions.json")
    assert status == 1
    assert "lost: " in text
    assert ": linear (" in text
