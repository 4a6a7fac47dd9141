"""How long a buffer must be quiet before it is traced."""

import pytest

from tests.lsp.client import at
from tests.lsp.models import NORM, marked
from topos_core.session.workspace import open_workspace
from topos_lsp.documents import Document
from topos_lsp.files import File
from topos_lsp.homes import Home
from topos_lsp.positions import Text


@pytest.mark.parametrize(
    ("seconds", "interrupted", "debounce", "pause"),
    [
        (0.4, False, 0.15, 0.15),
        (0.4, True, 0.15, 0.4),
        (0.1, True, 0.15, 0.15),
        (30.0, True, 0.15, 2.0),
        (30.0, True, 5.0, 5.0),
    ],
)
def test_the_pause_is_as_long_as_a_trace_while_keystrokes_end_traces(tmp_path, seconds, interrupted, debounce, pause):
    home = Home(open_workspace(str(tmp_path)))
    file = File(
        Document("untitled:a", str(tmp_path / "a.py"), 1, Text("")), home, seconds=seconds, interrupted=interrupted
    )
    assert file.pause(debounce) == pause


def test_a_text_after_one_whose_trace_was_ended_is_traced(shared, opened):
    before = len(shared.requests)
    name = opened(marked("while True: pass", name="loop"))
    shared.wait(lambda: any(method == "window/workDoneProgress/create" for method, _ in shared.requests[before:]))
    shared.change(name, NORM, 2)
    shared.wait_for_hints(name)
    assert shared.request("textDocument/codeLens", at(name))[0]["command"]["title"].endswith("open plan")
