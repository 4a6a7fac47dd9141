"""What a buffer shows, over client profiles and encodings."""

import copy
import re
import urllib.error
import urllib.request

import pytest

from tests.lsp.client import FULL, at, position, span
from tests.lsp.conftest import VOUCHED
from tests.lsp.models import HEADER, NORM, WIDE, marked
from topos_web.plans import plan_id

NEOVIM = {**copy.deepcopy(FULL), "general": {"positionEncodings": ["utf-8", "utf-16", "utf-32"]}}
EMACS = {
    **copy.deepcopy(FULL), "general": {"positionEncodings": ["utf-32", "utf-8", "utf-16"]},
    "textDocument": {**copy.deepcopy(FULL["textDocument"]), "hover": {"contentFormat": ["plaintext"]}},
}  # fmt: skip
OLD = {"textDocument": {"publishDiagnostics": {}, "hover": {}}}
PROFILES = {"vscode": (FULL, "utf-16"), "neovim": (NEOVIM, "utf-8"), "emacs": (EMACS, "utf-32"), "old": (OLD, "utf-16")}


def units(text, encoding):
    size = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    return len(text.encode(encoding if size == 1 else f"{encoding}-le")) // size


@pytest.mark.parametrize("profile", PROFILES)
def test_columns_are_the_clients_and_what_it_lacks_is_told_otherwise(start, project, profile):
    capabilities, encoding = PROFILES[profile]
    client = start()
    announced = client.initialize(project, capabilities, VOUCHED)
    assert announced["positionEncoding"] == encoding
    name = client.open(project / "wide.py", WIDE)
    (found,) = client.wait_for_diagnostics(name)
    lines = WIDE.split("\n")
    number = next(k for k, line in enumerate(lines) if "tp.observe" in line)
    column = lines[number].index("tp.observe")
    expected = units(lines[number][:column], encoding), units(lines[number], encoding)
    where = found["range"]
    assert (where["start"], where["end"]) == (position(number, expected[0]), position(number, expected[1]))
    made = lines[number - 1].index("x - mean")
    if profile == "old":
        assert "relatedInformation" not in found
        assert "codeDescription" not in found
        assert f"the value is made here: line {number}" in found["message"]
    else:
        related = {row["message"]: row["location"]["range"]["start"] for row in found["relatedInformation"]}
        assert related["the value is made here"] == position(number - 1, units(lines[number - 1][:made], encoding))
        assert found["codeDescription"]["href"].endswith("#L5")
    hover = client.hover(name, number - 1, units(lines[number - 1][: made + 2], encoding))
    assert hover.startswith("blocked: batch norm" if profile == "emacs" else "**blocked**: batch norm")
    assert ("TP101](file://" in hover) == (profile != "emacs")
    (hint,) = client.request("textDocument/inlayHint", {**at(name), "range": span(0, 0, 99, 0)})
    assert hint["position"] == position(len(lines) - 2, units(lines[-2], encoding))
    assert client.shutdown() == 0


def test_a_diagnostic_says_verdict_reason_number_and_action(shared, observed_buffer):
    (found,) = shared.diagnostics(observed_buffer)["diagnostics"]
    headline, number, action = found["message"].split("\n")
    assert headline.startswith("blocked: convolution 3x3, 16 -> 32 channels + bias + relu ")
    assert "`columns` is read by `tp.observe`" in headline
    assert re.fullmatch(r"reading it costs about [\d.]+ ms per run \(modelled, reference\)", number)
    assert action.startswith("observe `np.maximum(hidden, 0)` at observed_buffer.py:16:12 instead")
    assert (found["severity"], found["code"], found["source"]) == (3, "TP101", "topos")
    assert shared.diagnostics(observed_buffer)["version"] == 1


@pytest.fixture
def observed_buffer(shared, opened):
    from tests.lsp.client import ROOT

    name = opened((ROOT / "examples" / "observed.py").read_text(), "observed_buffer")
    shared.wait_for_diagnostics(name)
    return name


def test_every_op_and_every_observation_has_a_hover(shared, observed_buffer):
    blocked = shared.hover(observed_buffer, 15, 14)
    assert blocked.startswith("**blocked**: convolution 3x3, 16 -> 32 channels + bias + relu")
    assert "stablehlo: declined" in blocked
    assert "`maximum` gives `f32\\[8192,32\\]`" in blocked or "`maximum` gives `f32[8192,32]`" in blocked
    assert "traced with" in blocked
    reader = shared.hover(observed_buffer, 13, 8)
    assert reader.startswith(
        "**observed**: `columns` is read by `tp.observe`, which blocks convolution 3x3, 16 -> 32 channels + bias + relu"
    )
    kept = shared.hover(observed_buffer, 24, 8)
    assert kept.startswith("**kept**: `mean` is mean of batch norm (training), ")
    argument = shared.hover(observed_buffer, 8, 22)
    assert "`input` gives `f32[8,16,32,32]`" in argument
    assert "no pattern matches here" not in argument  # an input does not run
    assert "no pattern matches here" in shared.hover(observed_buffer, 15, 36)
    assert shared.hover(observed_buffer, 8, 5) == "**hidden_observed**: 1 taken, 1 blocked"
    assert shared.hover(observed_buffer, 1, 0) is None


def test_hints_are_one_a_line_and_equal_ones_are_counted(shared, opened):
    calls = "\n".join("x = norm(x)" for _ in range(12))
    body = f"def norm(v):\n    m = v.mean(axis=(0, 2, 3), keepdims=True)\n    c = v - m\n    w = (c * c).mean(axis=(0, 2, 3), keepdims=True)\n    return c / np.sqrt(w + 1e-5)\n{calls}\nreturn x"
    name = opened(marked(body, "x=tp.f32[8, 4, 6, 6]"))
    hints = shared.wait_for_hints(name)
    assert hints[10] == "taken: batch_norm_training x12"
    call = shared.hover(name, 11, 10)
    assert call.startswith("**taken**: batch norm")
    shared.request("workspace/executeCommand", {"command": "topos.toggleHints", "arguments": ["taken"]})
    assert 10 not in shared.hints(name)
    shared.request("workspace/executeCommand", {"command": "topos.toggleHints", "arguments": ["taken"]})
    assert shared.hints(name) == hints


def test_lenses_and_symbols_stand_for_entries(shared, observed_buffer):
    lenses = shared.request("textDocument/codeLens", at(observed_buffer))
    assert [(each["range"]["start"]["line"], each["command"]["title"]) for each in lenses] == [
        (8, "1 taken, 1 blocked: open plan"), (19, "1 taken: open plan"),
    ]  # fmt: skip
    symbols = shared.request("textDocument/documentSymbol", at(observed_buffer))
    assert [(each["name"], each["detail"]) for each in symbols] == [
        ("hidden_observed", "1 taken, 1 blocked"), ("statistics_observed", "1 taken"),
    ]  # fmt: skip
    (region,) = symbols[1]["children"]
    assert (region["name"], region["detail"]) == ("batch norm (training), 32 channels", "taken")
    assert symbols[0]["range"] == span(7, 0, 15, 77)


def test_symbols_list_what_helpers_hold_beside_the_entries(shared, opened):
    text = (
        "import numpy as np, topos_core as tp\n\n"
        "def norm(x):\n    y = x - x.mean(axis=(0, 2, 3), keepdims=True)\n"
        "    return y / np.sqrt((y * y).mean(axis=(0, 2, 3), keepdims=True) + 1e-5)\n\n"
        "@tp.model(x=tp.f32[64, 32, 28, 28])\ndef main(x):\n    return norm(norm(x))\n"
    )
    name = opened(text)
    shared.wait_for_lens(name, "2 taken")
    main, helper = shared.request("textDocument/documentSymbol", at(name))
    assert (main["name"], main["children"]) == ("main", [])
    assert helper["name"] == "norm"
    assert ("batch norm (training), 32 channels", "taken x2") in [(e["name"], e["detail"]) for e in helper["children"]]
    (helper_line,) = {each["range"]["end"]["line"] for each in helper["children"] if each["detail"] == "taken x2"}
    assert helper_line == 4


def test_a_buffer_that_is_opened_twice_is_traced_as_it_is_now(shared, opened):
    opened(marked("while True: pass"), "twice")
    name = opened(NORM, "twice")
    assert list(shared.wait_for_hints(name).values()) == ["taken: batch_norm_training"]


def test_a_byte_order_mark_and_a_nul_in_a_name_change_nothing(shared, opened):
    name = opened("\ufeff" + NORM)
    assert list(shared.wait_for_hints(name).values()) == ["taken: batch_norm_training"]
    assert not (shared.diagnostics(name) or {"diagnostics": []})["diagnostics"]
    shared.change(name, "\ufeff" + NORM.replace("return (x", "return undefined + (x"), 2)
    (found,) = shared.wait_for_diagnostics(name)
    assert (found["code"], found["range"]["start"]) == ("TP402", position(8, 11))
    strange = shared.open("file:///nowhere/a%00b.py", NORM)
    assert list(shared.wait_for_hints(strange).values()) == ["taken: batch_norm_training"]
    shared.notify("textDocument/didClose", at(strange))


def actions(client, name, line, character, only=None):
    context = {"diagnostics": [], **({"only": only} if only else {})}
    where = span(line, character, line, character)
    return client.request("textDocument/codeAction", {**at(name), "range": where, "context": context})


def apply(text, edit):
    (change,) = edit["documentChanges"]
    lines = text.split("\n")
    for each in sorted(change["edits"], key=lambda e: -e["range"]["start"]["line"]):
        first, last = each["range"]["start"], each["range"]["end"]
        before = "\n".join([*lines[: first["line"]], lines[first["line"]][: first["character"]]])
        after = "\n".join([lines[last["line"]][last["character"] :], *lines[last["line"] + 1 :]])
        lines = (before + each["newText"] + after).split("\n")
    return change["textDocument"]["version"], "\n".join(lines)


def test_fixes_end_the_finding_that_they_are_offered_for(shared, opened, observed_buffer):
    from tests.lsp.client import ROOT

    text = (ROOT / "examples" / "observed.py").read_text()
    found = {each["title"]: each for each in actions(shared, observed_buffer, 13, 6, ["quickfix"])}
    move = "observe `np.maximum(hidden, 0)` instead"
    assert list(found) == [move, "stop observing `columns`", "leave TP101 out here with a comment"]
    assert found[move]["isPreferred"]
    assert found["stop observing `columns`"]["diagnostics"][0]["code"] == "TP101"
    version, removed = apply(text, found["stop observing `columns`"]["edit"])
    assert version == 1
    assert removed == text.replace('    tp.observe(columns, "columns")\n', "")
    _, ignored = apply(text, found["leave TP101 out here with a comment"]["edit"])
    assert 'tp.observe(columns, "columns")  # topos: ignore[TP101]\n' in ignored
    shared.change(observed_buffer, ignored, 2)
    shared.wait_for_diagnostics(observed_buffer, lambda found: not found)
    shared.change(observed_buffer, apply(text, found[move]["edit"])[1], 3)
    shared.wait_for_hints(observed_buffer, lambda found: found.get(14) == "taken: conv_bn_activation")
    shared.change(observed_buffer, removed, 4)
    shared.wait_for_hints(observed_buffer, lambda found: found.get(14) == "taken: conv_bn_activation")


def test_an_ignore_comment_goes_where_it_is_read(shared, opened):
    name = opened(NORM)
    shared.wait_for_hints(name)
    observing = NORM.replace("    variance =", "    c = x - mean; tp.observe(c, 'c')  # a note\n    variance =").replace(
        "((x - mean) ** 2)", "(c * c)"
    ).replace("return (x - mean)", "return c")  # fmt: skip
    shared.change(name, observing, 2)
    (finding,) = shared.wait_for_diagnostics(name)
    line = finding["range"]["start"]["line"]
    titles = {
        each["title"]: each
        for each in actions(shared, name, line, finding["range"]["start"]["character"], ["quickfix"])
    }
    _, text = apply(observing, titles["leave TP101 out here with a comment"]["edit"])
    assert "    # topos: ignore[TP101]\n    c = x - mean; tp.observe(c, 'c')  # a note\n" in text


def test_commands_show_the_plan_at_a_region_and_the_emitted_text(shared, observed_buffer):
    open_plan = next(
        each for each in actions(shared, observed_buffer, 27, 12) if each["title"].startswith("open the plan at")
    )
    assert open_plan["title"] == "open the plan at batch norm (training), 32 channels: taken"
    emit = next(
        each for each in actions(shared, observed_buffer, 27, 12) if each["title"].startswith("show the StableHLO")
    )
    shared.answers["window/showDocument"] = {"success": True}
    result = shared.request("workspace/executeCommand", emit["command"])
    assert "stablehlo.batch_norm_training" in result["text"]
    assert result["shown"]
    (shown,) = [params for method, params in shared.requests if method == "window/showDocument"]
    assert shown["uri"].endswith("observed_buffer_py_statistics_observed.mlir")


def test_off_and_unused_comments_are_understood(shared, opened):
    text = NORM.replace("    return", "    # topos: off[batch_norm_training]\n    return")
    name = opened(text)
    assert shared.wait_for_hints(name) == {9: "declined (switched-off): batch_norm_training, 1 more"}
    unused = NORM.replace("keepdims=True)\n    variance", "keepdims=True)  # topos: ignore[TP202]\n    variance")
    shared.change(name, unused, 2)
    assert shared.wait_for_hints(name, lambda found: found.get(8, "").startswith("taken"))
    line = next(k for k, each in enumerate(unused.split("\n")) if "ignore" in each)
    column = unused.split("\n")[line].index("# topos")
    (fix,) = [
        each for each in actions(shared, name, line, column, ["quickfix"]) if each["title"] == "remove the comment"
    ]
    assert apply(unused, fix["edit"])[1] == NORM


def test_a_helper_is_marked_at_its_line_and_at_the_line_that_calls_it(shared, opened):
    (shared.folder / "blocks.py").write_text(
        NORM.replace("@tp.model(x=tp.f32[8, 4, 6, 6], scale=tp.f32[4], shift=tp.f32[4])\n", "")
    )
    caller = (
        HEADER
        + "import blocks\n\n\n"
        + "@tp.model(x=tp.f32[8, 4, 6, 6], a=tp.f32[4])\ndef main(x, a):\n    return blocks.norm(x, a, a)\n"
    )
    name = opened(caller)
    assert shared.wait_for_hints(name) == {9: "taken: batch_norm_training"}
    helper = shared.open(shared.folder / "blocks.py")
    assert shared.wait_for_hints(helper) == {7: "taken: batch_norm_training"}
    assert shared.hover(helper, 7, 12).startswith("**taken**: batch norm")
    shared.notify("textDocument/didClose", at(helper))


def test_the_plan_opens_in_a_viewer_that_is_started_once_and_ends_with_the_server(start, observed):
    shown = []
    client = start(answers={"window/showDocument": lambda params: shown.append(params) or {"success": True}})
    client.initialize(observed.parent, options=VOUCHED)
    name = client.open(observed)
    client.wait_for_diagnostics(name)
    (lens, _) = client.request("textDocument/codeLens", at(name))
    first = client.request("workspace/executeCommand", lens["command"])
    key = "conv_bn_activation/x/encoder.layer0/0"
    arguments = [name, "hidden_observed", key]
    second = client.request("workspace/executeCommand", {"command": "topos.openPlan", "arguments": arguments})
    address, _, fragment = second["url"].partition("#")
    assert first["url"] == f"{address}#plan={plan_id('observed.py:hidden_observed')}"
    assert (
        fragment == f"plan={plan_id('observed.py:hidden_observed')}&sel=r%3Aconv_bn_activation%2Fx%2Fencoder.layer0%2F0"
    )
    assert [(each["uri"], each["external"]) for each in shown] == [(first["url"], True), (second["url"], True)]
    with urllib.request.urlopen(address, timeout=30) as page:
        assert page.status == 200
    assert client.shutdown() == 0
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=5)


def test_a_project_that_is_renamed_or_deleted_under_its_buffer_is_told(start, tmp_path):
    folder = tmp_path / "going"
    folder.mkdir()
    client = start()
    client.initialize(folder, options=VOUCHED)
    name = client.open(folder / "norm.py", NORM)
    client.wait_for_hints(name)
    folder.rename(tmp_path / "gone")
    client.change(name, NORM + "\n", 2)
    (found,) = client.wait_for_diagnostics(name)
    assert found["code"] == "TP505"
    assert found["message"] == (
        f"no plan: the project's folder {folder} is gone, renamed or deleted; open the file where it is now"
    )
    folder.mkdir()
    client.change(name, NORM + "\n\n", 3)
    client.wait_for_diagnostics(name, lambda found: not found)
