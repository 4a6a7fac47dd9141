"""Reading a value while it is recorded: formatting observes it, whatever needs its number is an error with a remedy."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import numpy as np

from topos_core.errors import RecordingError
from topos_core.recording.foreign import called
from topos_core.recording.recorder import CURRENT
from topos_core.recording.remedies import NO_NUMBER, of_attribute, of_function
from topos_core.recording.value import Value
from topos_core.tape.type import INTEGERS


class Reading:
    """What `.item()` gives while recording: it can be formatted, and nothing else."""

    __slots__ = ("_shown", "_value")

    def __init__(self, value: Value) -> None:
        self._value = value
        self._shown = f"{value.type.dtype} value"

    def __repr__(self) -> str:
        return self._shown

    def __str__(self) -> str:
        return self._shown

    def __format__(self, spec: str) -> str:
        return formatted(self._shown, spec)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise self._value.recorder.error(
            f".item() of a recorded value can only be formatted: {NO_NUMBER}; keep the value itself, without .item()",
            self._value,
        )

    __hash__ = _refuse
    __bool__ = __float__ = __int__ = __index__ = __complex__ = __round__ = __trunc__ = __floor__ = __ceil__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __divmod__ = __rdivmod__ = _refuse
    __neg__ = __pos__ = __abs__ = __invert__ = __matmul__ = __rmatmul__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __array__ = __array_ufunc__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()


class MissingAttribute(RecordingError, AttributeError):
    """An array attribute without recorded meaning; an AttributeError too, so that `hasattr` answers False."""


def observe_print(value: Value) -> None:
    """Records that a value is formatted here; outside of its trace nothing is recorded."""
    if CURRENT.get() is value.recorder:
        value.recorder.observe(value, "print")


def item(value: Value, position: tuple[int, ...]) -> Reading:
    """Records that a value's number is read here.

    Raises:
        RecordingError: The value has more than one element.
    """
    picked = (
        value[position if len(position) > 1 or not position else np.unravel_index(position[0], value.type.shape)]
        if position
        else value
    )
    if picked.size != 1:
        raise value.recorder.error(
            f".item() of {value.type}: one element is needed, it has {value.size}; index or reduce it first"
        )
    value.recorder.observe(picked, "item")
    return Reading(picked)


def formatted(text: str, spec: str) -> str:
    """Formats a placeholder; a spec for numbers (`.3f`) keeps its width only."""
    try:
        return format(text, spec)
    except ValueError:
        return text


def refuse_truth(value: Value) -> RecordingError:
    """Says what to write instead of a branch."""
    return value.recorder.error(
        f"the truth of {value.type} is not known while recording; write np.where(condition, a, b) instead of"
        " if, while, and, or, not, in, max() and chained comparisons",
        value,
    )


def refuse_number(value: Value, how: str) -> RecordingError:
    """Says what to write instead of float() and its kin."""
    return value.recorder.error(
        f"{how} of {value.type}: {NO_NUMBER}; keep the value and use np functions instead of math's,"
        " or read it with tp.observe",
        value,
    )


def refuse_index(value: Value) -> RecordingError:
    """Says what to write instead of a recorded size or loop bound."""
    return value.recorder.error(
        f"{value.type} is used as a Python integer (an index, size, range or axis): {NO_NUMBER};"
        " use np.take for a lookup, and extents for sizes",
        value,
    )


def refuse_array(value: Value) -> RecordingError:
    """Says what to write instead of a function that turns its argument into a plain array, by its name where it has one.

    `array[index]` and `np.take(array, index)` of a NumPy array end here too: neither asks its index.
    """
    there = called(sys._getframe(1))
    if there is not None:
        module, name = there
        whose = f"{module}.{name} turns" if name else f"a function of {module} turns"
        remedy = of_function(module, name or "")
        message = f"{whose} {value.type} into a plain array, whose numbers do not exist while recording; {remedy}"
        return value.recorder.error(message, value)
    if value.type.dtype in INTEGERS:
        remedy = (
            "to look rows of an array up write tp.take(array, index, axis=0), for a list of values np.stack, to read it"
            " tp.observe"
        )
    else:
        remedy = (
            "use np.stack for a list of values, tp.as_strided for strides, the value itself instead of np.asarray,"
            " tp.observe to read it"
        )
    message = f"{value.type} is turned into a plain array here, whose numbers do not exist while recording; {remedy}"
    return value.recorder.error(message, value)


def refuse_assignment(value: Value) -> RecordingError:
    """Says what to write instead of item assignment."""
    return value.recorder.error(
        f"item assignment changes {value.type} in place; write np.where(mask, new, old), or np.concatenate of the parts",
        value,
    )


def refuse_pickle(value: Value) -> RecordingError:
    """Says why a value stays in its process."""
    return value.recorder.error(
        f"{value.type} cannot be pickled: it has no numbers; return it, or read it with tp.observe", value
    )


def missing_attribute(value: Value, name: str) -> Exception:
    """Gives a plain AttributeError for protocols that are probed for, and ours for array methods that a user wrote."""
    if name.startswith("_") or not hasattr(np.ndarray, name):
        return AttributeError(f"a recorded value has no attribute {name!r}")
    recorder = value.recorder
    before = recorder.last_error
    error = recorder.error(f"ndarray.{name} has no recorded meaning; {of_attribute(name)}", value)
    recorder.last_error = before  # whoever asks with hasattr has been answered
    return MissingAttribute(error.message, span=error.span, related=error.related)
