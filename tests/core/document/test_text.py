from __future__ import annotations

import re

from tests.core.document.models import Model, document
from topos_core.cost.profiles import derived_host
from topos_core.document.formats.text import render_plan
from topos_core.plan.request import Request
from topos_core.tape.tape import Note


def shown(text: str) -> str:
    """Hides figures that a change of the cost model may move."""
    return re.sub(r"\d[\d.]* (?:us|ns|ms|s|KiB|MiB|B)\b", "N", text)


def test_a_plan_is_told_verdict_first_and_the_larger_before_the_smaller() -> None:
    text = render_plan(document(Model()))
    assert shown(text) == (
        "model.py:main  (home, fast, machine reference)\n"
        "  2 taken, 0 declined, 1 blocked, 0 near misses, 8 ops\n"
        "  time N -> N (modelled, reference)\n"
        "  calls 3 calls -> 2 calls (counted)\n"
        "  traffic N -> N (counted)\n"
        "  peak N -> N (counted)\n"
        "  arena N (counted)\n"
        "\n"
        "blocked   linear bias activation TP101\n"
        "          model.py:9:14\n"
        "          `product` is read by `tp.observe`; the faster form never makes it\n"
        "          reading it costs about N per run (modelled, reference)\n"
        "          in its place runs linear and elementwise chain, and the rest op by op\n"
        "          you can: observe `np.maximum(product + bias, 0)` at model.py:9:14 instead: that costs nothing\n"
        "          stablehlo: blocked: `product` is read by `tp.observe`; the faster form never makes it\n"
        "\n"
        "taken     linear (inside linear_bias_activation@7)\n"
        "          model.py:7:15\n"
        "          one kernel instead of 1 call\n"
        "          runs as 8x48 tile\n"
        "          saves about N of N (modelled, reference)\n"
        "          moves N instead of N (counted)\n"
        "          error against float64 at most 2.0e-06 relative plus 1.0e-06 (measured on linear/1)\n"
        "          stablehlo: taken: becomes stablehlo.dot_general\n"
        "\n"
        "taken     elementwise chain (inside linear_bias_activation@7)\n"
        "          model.py:9:14\n"
        "          one kernel instead of 2 calls\n"
        "          runs as loop nest\n"
        "          saves about N of N (modelled, reference)\n"
        "          moves N instead of N (counted)\n"
        "\n"
        "observed\n"
        "  model.py:8:5: %4 `product` by `tp.observe`; blocks linear_bias_activation@7\n"
    )


def test_equal_regions_of_one_place_fold_into_one_with_their_number() -> None:
    text = render_plan(document(Model(layers=12, observe=None)))
    assert "taken     linear bias activation x12\n" in text
    assert text.count("linear bias activation") == 1


def test_colour_only_repeats_words_and_is_off_unless_asked_for() -> None:
    found = document(Model())
    assert "\x1b" not in render_plan(found)
    assert re.sub(r"\x1b\[\d+m", "", render_plan(found, colour=True)) == render_plan(found)


def test_settings_that_matter_are_named() -> None:
    text = render_plan(document(Model(observe=None), request=Request(machine="reference", cost="always")))
    assert text.startswith("model.py:main  (home, fast, machine reference, cost always)\n")


def test_a_machine_with_borrowed_figures_says_whose_they_are() -> None:
    host = document(Model(observe=None), request=Request(machine="host"))
    bits = derived_host().lanes * 32
    assert (
        f"(home, fast, machine host (not calibrated: the figures of reference for {bits}-bit vectors))"
        in render_plan(host)
    )
    reference = document(Model(observe=None), request=Request(machine="reference"))
    assert "machine_title" not in reference
    assert "(home, fast, machine reference)" in render_plan(reference)


def test_notes_stand_at_the_end_with_their_code_and_place() -> None:
    text = render_plan(document(Model(observe=None, notes=(Note("TP702", 5, "random numbers were drawn"),))))
    assert text.endswith("\nnoted\n  model.py:9:25: TP702 random numbers were drawn\n")
