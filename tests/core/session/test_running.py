from __future__ import annotations

import numpy as np
import pytest

from topos_core.session import running


@pytest.mark.parametrize(("enough", "runs"), [(1e9, 4), (1e-12, 2)])
def test_a_backend_runs_again_until_that_took_enough(monkeypatch, enough, runs):
    monkeypatch.setattr(running, "_ENOUGH", enough)
    ran = []

    def run():
        ran.append(len(ran))
        return [np.full(2, ran[-1])]

    seconds, outputs = running._clocked(run, "home", lambda *step: None)
    assert len(ran) == runs
    assert outputs[0].tolist() == [0, 0]
    assert {name: figure["basis"] for name, figure in seconds.items()} == {"first": "measured", "median": "measured"}
