"""Terms: a pattern written as model code.

A term is a function over arrays. Its holes have labels for axes ("n c"); a label stands for a set of digits of the program
that is matched, so rank, layout and batch are free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from topos_core.recording.value import Value

ANCHOR: Final = "anchor"
DIFFERENCE: Final = "difference"


@dataclass(frozen=True, slots=True)
class Lookalike:
    """A known other formula that is taken for the pattern: what the pattern needs and what stands there instead.

    `required` and `excluded` are optional holes that it cannot do without, or does not have; `constants` are numbers that the
    program chooses beside the term's own; `labels` are those of holes, where they are not the term's; `flat` is as of a form. Of
    two that match alike the one listed first is told.
    """

    formula: Callable[..., Any]
    code: str
    expected: str
    found: str
    required: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()
    constants: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    flat: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """A spelling that needs more to be said than its formula.

    Args:
        formula: A function of the term's holes and constants, by name.
        required: Optional holes that it cannot do without.
        excluded: Optional holes that it does not have.
        constants: Numbers that the program chooses beside the term's own.
        dtypes: Dtypes of holes, where they are not float64.
        labels: Labels of holes, where they are not the term's.
        silent: Whether its anchor says too little to speak of a near miss.
        flat: Whether its products are multiplied out, however often an operand of theirs is read: it is compared with all that
            stands in a product of the program, in whatever order that was multiplied.
    """

    formula: Callable[..., Any]
    required: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()
    constants: tuple[str, ...] = ()
    dtypes: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    silent: bool = False
    flat: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A pattern as model code.

    Args:
        formula: A function of the holes and constants, by name; a dropped hole is None.
        facts: Turns what was found (a `binding.Found`) into the pattern's facts; None where it is another pattern's
            business.
        holes: Labels of each hole's axes, such as `{"x": "n c", "scale": "c"}`.
        optional: Holes that may be missing.
        constants: Numbers that the program chooses, such as `epsilon`.
        forms: Spellings that keys do not bring together with the formula: distributed sums, identities of exp; or
            formulas that differ in meaning, which the pattern's facts tell apart.
        lookalikes: Other formulas that people take for this one.
        free: Holes that need not vary along all of their labels (a mask).
        raw: Holes that are bound without their factor where there is a choice (a scaled query).
        least: Optional holes of which a match has at least one.
        family: Patterns of one family exclude each other at a value: the one listed earlier is found.
        near: Functions that any program has within reach of the root, beside those of the formula.
        own: Says of a match (`core.Keys`, `attempt.Attempt`), before its values are bound, whether it is this pattern's
            business; always where left out.
        settled: Gives what was found in other words, where roles could be taken either way; as it is where left out.
        worth: Says of a failed try (`core.Keys`, `attempt.Attempt`) whether it is worth telling; always where left out.
    """

    formula: Callable[..., Any] | Form
    facts: Callable[[Any], Any]
    holes: Mapping[str, str]
    optional: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    forms: tuple[Callable[..., Any] | Form, ...] = ()
    lookalikes: tuple[Lookalike, ...] = ()
    free: frozenset[str] = frozenset()
    raw: frozenset[str] = frozenset()
    least: frozenset[str] = frozenset()
    family: str = ""
    near: tuple[str, ...] = ()
    own: Callable[[Any, Any], bool] | None = None
    settled: Callable[[Any], Any] | None = None
    worth: Callable[[Any, Any], bool] | None = None


def mark(value: Any, name: str) -> Any:
    """Names an inner value of a formula: a named result, or the `anchor` whose presence makes a failure worth telling."""
    if isinstance(value, Value):
        value.recorder.observe(value, "observe", name)
    return value


def anchor(value: Any) -> Any:
    """Marks the part of a formula that says what is meant; above it a failure is a near miss."""
    return mark(value, ANCHOR)


def difference(value: Any) -> Any:
    """Marks the part of a look-alike that stands in place of something else: there a near miss points."""
    return mark(value, DIFFERENCE)


def mean_as_numpy(x: Any, axes: Any, dtype: str) -> Any:
    """Gives the mean that NumPy computes of f16: summed in f32 and rounded.

    It goes back to the dtype that a formula is traced in, which is none of the pattern's.
    """
    return x.astype("f4").mean(axes, keepdims=True).astype(dtype).astype("f8")
