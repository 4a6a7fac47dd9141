from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.core.document.models import SOURCE, Model, document
from topos_core.document.places import split_lines

OBSERVING = '    tp.observe(product, "product")\n'


def fixes(source: str, call: str = 'tp.observe(product, "product")', **options: Any) -> dict[str, str]:
    """Gives the source after each fix, by title."""
    found = document(Model(source=source, observe=call, **options))
    (finding,) = [f for f in found["findings"] if f["code"] == "TP101"]
    assert finding["fix"] == (finding["fixes"][0] if finding["fixes"] else None)
    return {fix["title"]: applied(source, fix["edits"]) for fix in finding["fixes"]}


def applied(source: str, edits: list[dict[str, Any]]) -> str:
    """Applies edits as an editor does: by line and column, last first, none overlapping."""
    starts = [0]
    for line in split_lines(source)[:-1]:
        starts.append(starts[-1] + len(line))
        starts[-1] += 2 if source[starts[-1] : starts[-1] + 2] == "\r\n" else 1

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + column if line <= len(starts) else len(source)

    spans = [(offset(e["line"], e["column"]), offset(e["end_line"], e["end_column"]), e["text"]) for e in edits]
    assert spans == sorted(spans)
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    for start, end, text in reversed(spans):
        source = source[:start] + text + source[end:]
    return source


def test_the_observation_moves_behind_the_regions_result_or_goes() -> None:
    moved = SOURCE.replace(OBSERVING, "").replace("    return", '    tp.observe(hidden, "hidden")\n    return')
    assert fixes(SOURCE) == {
        "observe `hidden` instead": moved,
        "stop observing `product`": SOURCE.replace(OBSERVING, ""),
    }


def test_a_free_value_without_a_variable_is_observed_where_it_stands() -> None:
    source = SOURCE.replace(
        "    hidden = np.maximum(product + bias, 0)\n    return hidden", "    return np.maximum(product + bias, 0)"
    )
    assert source != SOURCE
    wrapped = source.replace(OBSERVING, "").replace(
        "np.maximum(product + bias, 0)", "tp.observe(np.maximum(product + bias, 0))"
    )
    found = fixes(source)
    assert found["observe `np.maximum(product + bias, 0)` instead"] == wrapped
    labelled = fixes(source.replace('"product"', '"seen"'), 'tp.observe(product, "seen")')
    assert (
        'tp.observe(np.maximum(product + bias, 0), "seen")'
        in labelled["observe `np.maximum(product + bias, 0)` instead"]
    )


@pytest.mark.parametrize("label", ['f"layer{k}"', '"the product"', 'name="seen"'])
def test_a_label_that_is_not_the_variables_name_stays(label: str) -> None:
    source = SOURCE.replace('"product"', label)
    moved = fixes(source, f"tp.observe(product, {label})")["observe `hidden` instead"]
    assert f"tp.observe(hidden, {label.removeprefix('name=')})" in moved


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_edits_fit_every_line_ending(ending: str) -> None:
    source = SOURCE.replace("\n", ending)
    assert fixes(source)["stop observing `product`"] == source.replace(OBSERVING.replace("\n", ending), "")


def test_an_observation_alone_in_its_block_leaves_pass() -> None:
    source = SOURCE.replace(OBSERVING, '    if x is not None:\n        tp.observe(product, "product")\n')
    expected = source.replace('tp.observe(product, "product")', "pass")
    assert fixes(source) == {"stop observing `product`": expected}


def test_an_observation_inside_an_expression_is_left_to_its_author() -> None:
    source = SOURCE.replace(OBSERVING, '    product = tp.observe(product, "product")\n')
    assert fixes(source) == {}


def test_statements_that_share_a_line_are_left_alone() -> None:
    source = SOURCE.replace(OBSERVING, '    tp.observe(product, "product"); side = 1\n')
    assert fixes(source) == {}


def test_an_observation_over_several_lines_goes_with_all_of_them() -> None:
    call = 'tp.observe(  # windows\n        product, "product")'
    source = SOURCE.replace('tp.observe(product, "product")', call)
    found = document(Model(source=source, observe="tp.observe("))
    # The recorded span is one line here, the call's is two: nothing stands exactly there, so nothing is offered.
    assert found["findings"][0]["fixes"] == []


def test_columns_count_code_points_and_not_bytes() -> None:
    source = SOURCE.replace(OBSERVING, '    "größe 🙂"\n' + OBSERVING).replace("hidden", "versteckt_ß")
    source = source.replace(
        "versteckt_ß = np.maximum(product + bias, 0)", "versteckt_ß = np.maximum(product + bias, 0)  # ß"
    )
    result = fixes(source)
    assert '    tp.observe(versteckt_ß, "versteckt_ß")\n    return' in result["observe `versteckt_ß` instead"]


def test_a_print_can_be_removed_and_not_moved() -> None:
    source = SOURCE.replace(OBSERVING, "    print(product)\n")
    assert fixes(source, "print(product)", name=None, kind="print") == {
        "remove this reader": source.replace("    print(product)\n", "")
    }


@pytest.mark.parametrize("kind", ["hook", "kept", "item"])
def test_readers_outside_the_text_have_no_edit(kind: str) -> None:
    assert fixes(SOURCE, kind=kind) == {}


def test_a_text_that_is_no_python_has_no_edit() -> None:
    assert fixes(SOURCE.replace("def main(x, w, bias):", "def main(x, w, bias) {")) == {}
