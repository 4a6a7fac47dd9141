from __future__ import annotations

import pytest

from topos_core.document.display import display


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("conv2d", "conv2d"),
        ("größe ≥ 1 卷积 🙂", "größe ≥ 1 卷积 🙂"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("access\u202elevel", "access\\u202elevel"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("line\u2028break\u2029", "line\\u2028break\\u2029"),
        ("lone\ud800", "lone\\ud800"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("C:\\models\\net.py", "C:\\models\\net.py"),
        ("forged \\n and \n", "forged \\\\n and \\n"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("", ""),
    ],
)
def test_text_from_outside_cannot_forge_hide_or_reorder_output(text: str, shown: str) -> None:
    assert display(text) == shown


@pytest.mark.parametrize(("length", "cut"), [(9, False), (10, False), (11, True)])
def test_text_is_cut_past_its_limit(length: int, cut: bool) -> None:
    assert display("x" * length, limit=10) == "x" * min(length, 10) + ("…" if cut else "")
