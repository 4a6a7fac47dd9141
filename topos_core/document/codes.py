"""The catalogue of TP codes: what each means and how loud it is. Codes are stable and never reused.

`topos explain CODE`, `docs/codes.md`, the editor's code descriptions and SARIF rules are made from this table alone.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from topos_core.document.finding import Severity
from topos_core.errors import FAILURES

SarifLevel = Literal["error", "warning", "note"]


class Code(NamedTuple):
    """One code.

    `word` is the stable word beside the code in regions and on the command line. `shown` says whether an editor shows
    it as a diagnostic unasked; the rest is in hovers and inlay hints.
    """

    code: str
    word: str
    title: str
    severity: Severity
    sarif: SarifLevel
    shown: bool
    explanation: str


_CODES: Final = (
    Code(
        "TP101",
        "observed",
        "blocked by observation",
        "information",
        "warning",
        True,
        "A value inside the region is read by somebody: `tp.observe`, a print, a hook, a kept reference, a returned "
        "output. The faster form never makes that value, so the region runs as recorded. The finding stands at the "
        "reader and names the value's own line and what the reading costs. Observe a value on the region's border "
        "instead (its result, its inputs, or a named result), or stop reading it.",
    ),
    Code(
        "TP102",
        "named-result",
        "named result kept",
        "hint",
        "note",
        False,
        "An observed inner value is a named result of the region (batch norm's mean and variance). The faster form "
        "makes it too and writes it back, so observing it costs nothing and the region is still taken.",
    ),
    Code(
        "TP201",
        "near-miss",
        "near miss",
        "hint",
        "note",
        False,
        "The code is almost a known pattern. The finding tells how many of its steps held and the first thing that "
        "differs, with what the pattern needs and what the program has. Where the difference is meant, nothing is wrong.",
    ),
    Code(
        "TP202",
        "cost",
        "declined by cost",
        "hint",
        "note",
        False,
        "The pattern matches, but the faster form would not be faster: the predicted time of the kernel is not below "
        "that of the recorded ops on the request's machine profile. Both numbers are told, and where one term decides, at "
        "which value the region would be taken. `--cost always` takes it anyway. A kernel predicted to be about as fast, and small ops that no layer was missed in, are counted but are no finding.",
    ),
    Code(
        "TP203",
        "shared-interior",
        "shared interior",
        "hint",
        "note",
        False,
        "A computed value inside the region is also read by another part of the program, which leads to an output. "
        "The faster form never makes that value. The finding names the reader. Compute what it needs from the region's "
        "result or inputs, or accept that the ops run as recorded.",
    ),
    Code(
        "TP204",
        "covered-by",
        "covered by another region",
        "hint",
        "note",
        False,
        "Another region that shares ops with this one was chosen, alone or with others on its ops. The finding names the winner and "
        "what decided: seconds saved, or ops covered where every legal region is wanted (`--cost always`) or named (`stablehlo`).",
    ),
    Code(
        "TP205",
        "fidelity",
        "declined by fidelity",
        "hint",
        "note",
        False,
        "The faster form does not keep the asked fidelity: `exact` wants the same bits as the recorded ops, and for a "
        "compiler target the shipped table says that its expansion loses too much. Both errors are told where they are known.",
    ),
    Code(
        "TP206",
        "no-kernel",
        "no kernel",
        "hint",
        "note",
        False,
        "The pattern matches, but this consumer has no kernel (or no named op) for its form, dtype or rank.",
    ),
    Code(
        "TP207",
        "guard",
        "declined by a guard",
        "hint",
        "note",
        False,
        "The pattern matches, but a condition of its own does not hold here; the finding tells which, with the numbers.",
    ),
    Code(
        "TP208",
        "switched-off",
        "switched off",
        "hint",
        "note",
        False,
        "The pattern was switched off, by the request or by a comment `# topos: off[PATTERN]` on the line.",
    ),
    Code(
        "TP209",
        "unknown-extent",
        "unknown extent",
        "hint",
        "note",
        False,
        "An extent of the region is not known. The finding names the dimension; `--dim NAME=SIZE` binds it.",
    ),
    Code(
        "TP301",
        "lost",
        "lost since the lock",
        "warning",
        "warning",
        True,
        "A region that the lock file says was taken is not taken any more. The finding tells its verdict now and whether "
        "the program, a library or topos itself changed. `--update-lock` accepts the new plan.",
    ),
    *(
        Code(
            code,
            failure.word,
            failure.title,
            "information" if code.startswith("TP4") else "error",
            "error",
            True,
            f"{failure.meaning} {failure.remedy}",
        )
        for code, failure in FAILURES.items()
    ),
    Code(
        "TP601",
        "unused-suppression",
        "unused suppression",
        "hint",
        "note",
        False,
        "A `# topos: ignore[...]` or `# topos: off[...]` comment suppresses nothing any more: remove it. "
        "Or it names a code or a pattern that there is not: correct the name.",
    ),
    Code(
        "TP701",
        "widened",
        "widened by a NumPy scalar",
        "hint",
        "note",
        False,
        "A NumPy scalar (`np.sqrt(64)`, `np.int64(3)`) made a 32-bit computation 64 bits wide, as NumPy itself does. "
        "Python scalars are weak: use `math.sqrt`, `float()` or `int()`.",
    ),
    Code(
        "TP702",
        "frozen-random",
        "random numbers are frozen",
        "information",
        "note",
        True,
        "A random state (NumPy's, Python's, or that of a generator that the program's own files hold) moved while the "
        "function was recorded: what was drawn is constants of the tape, the same in every run. The finding stands at "
        "the first array that was captured after the draw, or at the entry. Pass the numbers as an input, or draw them "
        "once outside of the function if they are meant to stay.",
    ),
    Code(
        "TP703",
        "nothing-returned",
        "nothing is returned",
        "information",
        "note",
        True,
        "The function gives back no value and observes none, so no run of it is of use and nothing is planned. Return the values "
        "that are wanted, or name them with `tp.observe`.",
    ),
    Code(
        "TP704",
        "contradicted-shape",
        "the model notes another shape",
        "information",
        "note",
        True,
        "An ONNX model notes a shape for a result that the result does not have, as topos and ONNX's own inference count it. Runtimes "
        "warn and go on, and so does topos. Export the model again, or remove the shape that it notes for this output.",
    ),
)

CODES: Final = {entry.code: entry for entry in _CODES}
WORDS: Final = {entry.word: entry.code for entry in _CODES}


def code_entry(code: str) -> Code:
    """Gives the catalogue's row of a code.

    Raises:
        KeyError: no such code; callers that take a person's word check `CODES` first.
    """
    return CODES[code]


def markdown() -> str:
    """Renders the catalogue as `docs/codes.md`."""
    lines = ["# Codes", "", "Codes are stable and never reused. Made from `topos_core/document/codes.py`.", ""]
    for entry in _CODES:
        shown = (
            "shown in the editor" if entry.shown else "in hovers and inlay hints, shown as a diagnostic when asked for"
        )
        lines += [
            f"## {entry.code} {entry.word}",
            "",
            f"**{entry.title}** ({entry.severity}, {shown})",
            "",
            entry.explanation,
            "",
        ]
    return "\n".join(lines)
