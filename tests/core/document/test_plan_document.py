from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import topos_core as tp
from examples import transformer_block
from tests.core.document.models import KERNEL, Model, document
from topos_core.cost.work import Work
from topos_core.document import codec
from topos_core.kernels.kernel import Decline, Offer
from topos_core.matching.match import NearMiss
from topos_core.plan.request import Request
from topos_core.tape.tape import Note

SLOW = KERNEL._replace(work=Work(flops=10**9))


def region(found: dict[str, Any], pattern: str, verdict: str | None = None) -> dict[str, Any]:
    return next(r for r in found["regions"] if r["pattern"] == pattern and verdict in (None, r["verdict"]))


def sentences(r: dict[str, Any]) -> list[str]:
    return [r["headline"], r["reason"], *r["details"], r["action"]]


# -- the contract


def test_a_document_has_the_contracts_fields_and_no_others() -> None:
    page = (Path(__file__).parents[3] / "docs" / "formats.md").read_text(encoding="utf-8")
    plan, region_text, finding = re.findall(r"```jsonc\n(\{.*?\n\})\n```", page, re.DOTALL)[:3]
    found = document(Model(), near=[NearMiss("softmax", 7, 6, "axis", "s", "e", "f", 1, 2)])

    def top_level(text: str) -> set[str]:
        return set(re.findall(r'(?:^  |, )"(\w+)":', re.sub(r"[\[{][^\n]*?[\]}]", "", text), re.MULTILINE))

    assert top_level(region_text) == set(found["regions"][0])
    assert top_level(finding) == set(found["findings"][0])
    assert set(re.findall(r'^  "(\w+)":', plan, re.MULTILINE)) <= set(found)
    for r in found["regions"]:
        assert set(r) == set(found["regions"][0])


def test_a_document_is_valid_json_that_the_codec_accepts() -> None:
    found = document(Model())
    assert codec.load(codec.dump(found)) == json.loads(json.dumps(found))


def test_columns_index_their_tables() -> None:
    found = document(Model())
    names = [found["names"][row] for row in found["ops"]["name"]]
    assert names == ["input", "parameter", "parameter", "permute", "matmul", "add", "constant", "maximum"]
    assert found["types"] == ["f32[64,64]"]
    assert found["ops"]["operands"][7] == [5, 6]
    assert found["ops"]["attributes"] == ["", "", "", "order=1,0", "accumulate=f32", "", "value=0.0", ""]
    assert found["inputs"] == [{"value": 0, "name": "x"}]
    assert [p["name"] for p in found["parameters"]] == ["w", "bias"]
    path, line, column, end_line, end_column, function, kind = found["frames"][
        found["spans"][found["ops"]["location"][4]]
    ]
    assert (found["paths"][path], line, column, end_line, end_column) == ("model.py", 7, 14, 7, 24)
    assert (found["functions"][function], kind) == ("main", "user")


def test_sources_come_along_unless_left_out() -> None:
    assert document(Model())["sources"] == [Model().source]
    assert "sources" not in document(Model(), sources=False)


def test_counts_are_of_what_is_reported() -> None:
    counts = document(Model())["counts"]
    assert counts == {"taken": 2, "declined": 0, "blocked": 1, "near_miss": 0, "ops": 8, "opaque": 0}


def test_two_documents_of_one_program_are_equal_and_hold_no_time() -> None:
    assert codec.dump(document(Model())) == codec.dump(document(Model()))


def test_the_digest_ignores_where_the_program_stands() -> None:
    moved = Model(source="\n\n" + Model().source, path="/elsewhere/other.py")
    assert document(moved)["digest"] == document(Model())["digest"]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/home/me/project/model.py", "model.py"),
        ("/home/me/project/net/block.py", "net/block.py"),
        ("/opt/venv/lib/python3.11/site-packages/torch/nn/modules/conv.py", "torch/nn/modules/conv.py"),
        ("/home/me/project2/model.py", "/home/me/project2/model.py"),
        ("/home/me/project/a\nb.py", "a\\nb.py"),
    ],
)
def test_paths_are_relative_to_the_project(path: str, shown: str) -> None:
    found = document(Model(path=path))
    assert shown in found["paths"]
    assert region(found, "linear")["path"] == shown


def test_liveness_has_both_curves() -> None:
    live = document(Model(observe=None))["liveness"]
    size = 64 * 64 * 4
    assert (live["steps"], live["bytes"], live["peak_bytes"]) == ([7], [size], size)
    assert live["recorded_bytes"] == [0, 0, 0, 0, size, size, size, size]
    assert (live["recorded_peak_bytes"], live["recorded_peak_step"]) == (
        2 * size,
        4,
    )  # the product and its contiguous operand


# -- the three verdicts in words


def test_a_taken_region_says_what_runs_what_it_saves_and_how_exact_it_is() -> None:
    r = region(document(Model(observe=None)), "linear_bias_activation")
    assert r["headline"] == "linear bias activation: taken"
    assert r["reason"] == "taken: one kernel instead of 3 calls"
    assert r["kernel"] == "8x48 tile"
    assert re.fullmatch(r"saves about [\d.]+ us of [\d.]+ us \(modelled, reference\)", r["details"][0])
    assert re.fullmatch(r"moves 64 KiB instead of [\d.]+ KiB \(counted\)", r["details"][1])
    assert "error against float64 at most 2.0e-06 relative plus 1.0e-06 (measured on linear/1)" in r["details"]
    assert r["envelope"] == {"relative": 2e-6, "absolute": 1e-6, "probe": "linear/1"}
    assert r["contains"] == ["linear@4", "elementwise_chain@7"]
    assert r["others"] == {
        "stablehlo": {"verdict": "taken", "code": None, "reason": "taken: becomes stablehlo.dot_general"}
    }


def test_spans_list_every_expression_root_first() -> None:
    r = region(document(Model(observe=None)), "linear_bias_activation")
    assert [(s["line"], s["column"]) for s in r["spans"]] == [(9, 13), (9, 24), (7, 14), (6, 13)]
    assert {k: r[k] for k in ("path", "line", "column", "end_line", "end_column")} == r["spans"][0]


def test_a_blocked_region_names_value_reader_price_and_a_free_place() -> None:
    found = document(Model())
    r = region(found, "linear_bias_activation")
    assert (r["verdict"], r["code"], r["word"]) == ("blocked", "TP101", "observed")
    assert r["reason"] == "blocked: `product` is read by `tp.observe`; the faster form never makes it"
    assert re.fullmatch(r"reading it costs about [\d.]+ us per run \(modelled, reference\)", r["details"][0])
    assert r["action"] == "observe `np.maximum(product + bias, 0)` at model.py:9:14 instead: that costs nothing"
    assert (r["observations"], r["paths"], r["nearest_free"]) == ([1], [[4]], 7)
    assert found["observations"][1]["blocks"] == [r["id"]]


def test_a_smaller_region_inside_a_blocked_one_names_its_parent() -> None:
    found = document(Model())
    blocked = region(found, "linear_bias_activation")
    assert [r["parent"] for r in found["regions"] if r["verdict"] == "taken"] == [blocked["id"]] * 2


def test_the_finding_stands_at_the_reader_with_the_values_own_line_related() -> None:
    (finding,) = document(Model())["findings"]
    assert (finding["code"], finding["severity"], finding["verdict"]) == ("TP101", "information", "blocked")
    assert (finding["path"], finding["line"], finding["column"], finding["end_column"]) == ("model.py", 8, 4, 34)
    assert (
        finding["headline"]
        == "blocked: linear bias activation cannot run as one because `product` is read by `tp.observe` here"
    )
    assert [(r["message"], r["line"]) for r in finding["related"]] == [
        ("the value is made here", 7),
        ("the linear bias activation ends here", 9),
    ]
    assert finding["region"] == "linear_bias_activation@7"


def test_a_decline_by_cost_puts_both_times_side_by_side() -> None:
    found = document(Model(observe=None), "linear", answers={"linear": SLOW})
    r = region(found, "linear")
    assert re.fullmatch(
        r"declined: the kernel is predicted to take 3\.\d+ ms, the recorded ops [\d.]+ us \(modelled, reference\)",
        r["reason"],
    )
    assert r["action"] == "take it anyway with `--cost always`"
    assert re.fullmatch(
        r"nothing alone flips it: its kernel would take 3\.\d+ ms at the whole roofline and 3\.\d+ ms if it started at once,"
        r" the recorded ops [\d.]+ us \(modelled, reference\)",
        r["flips_if"]["text"],
    )
    assert (r["flips_if"]["of"], r["flips_if"]["now"], r["flips_if"]["at"]) == (None, None, None)
    (finding,) = found["findings"]
    assert (finding["code"], finding["severity"], finding["headline"]) == (
        "TP202", "hint", r["reason"].replace("declined: ", "declined: linear, because "),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("offer", "of", "text"),
    [
        (
            KERNEL._replace(efficiency=0.04), "efficiency",
            r"flips if its kernel reached more than [\d.]+ % of the roofline, now 4 % \(modelled, reference\)",
        ),
        (
            KERNEL._replace(calls=50.0), "start",
            r"flips if its kernel took less than [\d.]+ us to start, now 200 us \(modelled, reference\)",
        ),
    ],
)  # fmt: skip
def test_a_decline_by_cost_tells_what_would_flip_it(offer: Offer, of: str, text: str) -> None:
    found = document(Model(observe=None), "linear", answers={"linear": offer})
    told = region(found, "linear")["flips_if"]
    assert re.fullmatch(text, told["text"])
    assert told["of"] == of
    assert (told["now"]["unit"], told["now"]["basis"]) == (told["at"]["unit"], told["at"]["basis"])
    plan = document(Model(observe=None), "linear", answers={"linear": KERNEL})
    assert region(plan, "linear")["flips_if"] is None


def test_a_covered_region_names_its_winner() -> None:
    found = document(Model(observe=None), "whole", "chain", "linear", answers={"linear_bias_activation": SLOW})
    assert region(found, "linear_bias_activation")["code"] == "TP202"
    found = document(
        Model(observe=None), "linear", "chain", request=Request(machine="reference", off=frozenset({"linear"}))
    )
    assert region(found, "linear")["reason"] == "declined: linear is switched off here"


def test_a_consumers_own_reason_is_passed_on_escaped() -> None:
    no = Decline("TP207", "guard", "stride 3\x1b[31m is not \u202e2")
    r = region(document(Model(observe=None), "linear", answers={"linear": no}), "linear")
    assert r["reason"] == "declined: stride 3\\x1b[31m is not \\u202e2"
    assert r["word"] == "guard"


def test_a_near_miss_tells_steps_expected_and_found() -> None:
    miss = NearMiss(
        "layer_norm", 7, 5, "divisor", "the variance divides by n - 1", "64 (n)", "63 (n - 1)", 7, 9, {"n": 64}
    )
    found = document(Model(observe=None), "whole", near=[miss])
    r = region(found, "layer_norm")
    assert r["reason"] == "near miss: the variance divides by n - 1"
    assert r["details"] == ["7 of the pattern's 9 steps held; expected 64 (n), found 63 (n - 1)"]
    assert r["near_miss"]["span"]["line"] == 9
    assert (r["verdict"], r["code"], r["facts"]) == ("near_miss", "TP201", {"n": "64"})
    finding = next(f for f in found["findings"] if f["code"] == "TP201")
    assert finding["related"][0]["message"] == "the first difference stands here"


def test_a_widening_note_is_a_hint_at_its_expression() -> None:
    note = Note("TP701", 5, "f32 became f64 here because of a NumPy scalar; use math.sqrt or float()")
    finding = next(f for f in document(Model(observe=None, notes=(note,)))["findings"] if f["code"] == "TP701")
    assert (finding["severity"], finding["line"], finding["verdict"]) == ("hint", 9, None)
    assert finding["headline"] == note.message


# -- many layers, one line


def test_equal_findings_of_one_place_are_told_once_with_their_number() -> None:
    found = document(Model(layers=12))
    assert found["counts"]["blocked"] == 12
    (finding,) = found["findings"]
    assert finding["details"][-1] == "the same holds for 11 more regions at this place"


def test_layers_that_differ_in_the_observed_name_alone_are_one_finding() -> None:
    found = document(Model(layers=3, name="layer{}"))
    assert {o["name"] for o in found["observations"] if o["kind"] == "observe"} == {"layer0", "layer1", "layer2"}
    (finding,) = found["findings"]
    assert "`layer0`" in finding["headline"]
    assert finding["details"][-1] == "the same holds for 2 more regions at this place"


@pytest.mark.parametrize(
    ("kind", "action"),
    [
        ("observe", "observe `np.maximum(product + bias, 0)` at model.py:9:14 instead: that costs nothing"),
        ("print", "read `np.maximum(product + bias, 0)` at model.py:9:14 instead: that costs nothing"),
        ("hook", "read `np.maximum(product + bias, 0)` at model.py:9:14 instead: that costs nothing"),
        ("output", "leave it out of what is returned, or accept that the region runs as recorded"),
    ],
)
def test_the_action_fits_the_reader(kind: str, action: str) -> None:
    assert region(document(Model(kind=kind)), "linear_bias_activation")["action"] == action


def test_regions_of_one_place_have_their_own_ids_and_keys_and_one_fold() -> None:
    found = document(Model(layers=3, observe=None))
    regions = [r for r in found["regions"] if r["pattern"] == "linear_bias_activation"]
    assert [r["occurrence"] for r in regions] == [0, 1, 2]
    assert len({r["id"] for r in regions}) == len({r["key"] for r in regions}) == 3
    assert len({r["fold"] for r in regions}) == 1


def test_scopes_are_tabled_and_named_in_keys() -> None:
    found = document(Model(observe=None, scope=("encoder", "layer0")))
    assert found["scopes"] == [[], ["encoder", "layer0"]]
    r = region(found, "linear_bias_activation")
    assert r["scope"] == ["encoder", "layer0"]
    assert r["key"] == f"linear_bias_activation/{r['fingerprint']}/encoder.layer0/0"


def test_text_from_the_program_is_escaped_everywhere() -> None:
    found = document(Model(name="ev\u202eil\n", scope=("a\x1b[2J",)))
    text = json.dumps({k: v for k, v in found.items() if k != "sources"}, ensure_ascii=False)
    assert not re.search(r"[\x00-\x1f\u202e\u2028]", text)
    assert found["observations"][1]["name"] == "ev\\u202eil\\n"


def test_every_sentence_is_lower_case_without_full_stop() -> None:
    no = Decline("TP206", "no-kernel", "no kernel for this")
    for answers in ({}, {"linear": SLOW}, {"linear_bias_activation": no}, {"elementwise_chain": no}):
        found = document(Model(), answers=answers)
        texts = [s for r in found["regions"] for s in sentences(r) if s]
        texts += [f["headline"] for f in found["findings"]]
        for text in texts:
            assert not text.endswith("."), text
            assert text[0] == text[0].lower(), text


def test_an_ignored_observation_keeps_its_row_and_says_so() -> None:
    found = document(Model(), request=Request(machine="reference", ignore=frozenset({1})))
    assert [o["ignored"] for o in found["observations"]] == [False, True]
    assert region(found, "linear_bias_activation")["verdict"] == "taken"


def test_an_asked_for_observation_has_a_row_behind_the_tapes() -> None:
    found = document(Model(observe=None), request=Request(machine="reference", observe=(4,)))
    assert [(o["asked"], o["value"], o["kind"]) for o in found["observations"]] == [
        (False, 7, "output"),
        (True, 4, "observe"),
    ]
    r = region(found, "linear_bias_activation")
    assert r["observations"] == [1]
    assert r["reason"] == "blocked: `turned @ w` is read by this question alone; the faster form never makes it"
    [finding] = [f for f in found["findings"] if f["code"] == "TP101"]
    assert finding["headline"].endswith(" is read by this question alone")


def test_a_region_that_others_were_chosen_before_says_what_decided() -> None:
    told = {"model": [], "always": []}
    for cost, reasons in told.items():
        plan = tp.plan(transformer_block.block, machine="reference", cost=cost)
        reasons += [r["reason"] for r in plan.document()["regions"] if r["code"] == "TP204"]
    block = "examples/transformer_block.py"
    assert (
        f"declined: attention at {block}:34:13 shares ops with it and saves more: 393 us, it 373 us (modelled, reference)"
    ) in told["model"]
    assert [
        reason for reason in told["always"] if "cover more together" in reason and reason.endswith(" ops, it 21 ops")
    ]


def test_a_declined_region_names_the_observation_that_would_block_it_too() -> None:
    found = tp.plan(transformer_block.block, machine="reference", observe=(33,)).document()
    r = region(found, "multi_head_attention")
    [row] = r["would_block"]
    assert (r["verdict"], r["code"], r["observations"], r["paths"]) == ("declined", "TP204", [], [])
    assert (
        "`x @ project`, which it never makes, is read by this question alone: that would block it if it were not declined"
        in r["details"]
    )
    observation = found["observations"][row]
    assert (observation["value"], observation["blocks"], observation["would_block"]) == (33, [], [r["id"]])
    assert observation["idle"] == "blocks nothing: multi head attention, which never makes it, is declined anyway"
    assert all(f["code"] != "TP101" for f in found["findings"])


def test_numbers_that_json_cannot_hold_become_null() -> None:
    endless = Offer("k", Work(flops=1), exact=True, efficiency=1e-320)
    r = region(document(Model(observe=None), "linear", answers={"linear": endless}), "linear")
    assert r["cost"]["seconds_after"]["value"] is None
