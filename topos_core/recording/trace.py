"""`tp.trace`: runs a function on recorded values and gives its tape."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from types import TracebackType
from typing import Any, Final

from topos_core.errors import RecordingError, ToposError, TraceError, said
from topos_core.recording.arguments import bind, place_inputs
from topos_core.recording.collector import collector_paused
from topos_core.recording.finish import finish
from topos_core.recording.hints import with_remedy
from topos_core.recording.location import call_user, frame_of, role_of
from topos_core.recording.model import entry_of
from topos_core.recording.randomness import RandomStates, generators_noted
from topos_core.recording.recorder import Recorder, recording
from topos_core.recording.signature import arguments_of, code_of, returned_at
from topos_core.recording.structure import flatten
from topos_core.recording.swallowed import refuse_swallowed
from topos_core.recording.value import Value
from topos_core.tape.span import Span
from topos_core.tape.tape import Tape

NOTHING_RETURNED: Final = (
    "the function returns nothing and observes nothing, so nothing of it is needed; return the values that are wanted"
)


def trace(function: Callable[..., Any], /, *positional: Any, **named: Any) -> Tape:
    """Records `function` and gives its tape.

    Args:
        function: A function, or an object that can be called. Marked by `tp.model`, it needs no specs here.
        positional, named: Its arguments: specs (`tp.f32[2, 3]`, `"i64[2,48]<100"`, a `TensorType`) become inputs;
            in tuples, lists and dicts too. Anything else is passed as it is: None, numbers, dicts of weights.

    Raises:
        RecordingError: TP401: an expression has no recorded meaning; the span is its own.
        TraceError: TP402: the function itself raised; the span is where it did.
        ConfigurationError: TP502: the specs do not fit the function's arguments; TP503: unknown dtype.
    """
    return record(function, positional, named)


def record(
    function: Callable[..., Any],
    positional: tuple[Any, ...] = (),
    named: Mapping[str, Any] | None = None,
    *,
    sources: Mapping[str, str] | None = None,
    dims: Mapping[str, int] | None = None,
) -> Tape:
    """Does what `trace` does, for callers that know more.

    Args:
        function, positional, named: As in `trace`.
        sources: Texts that take precedence over files, by path: an editor's unsaved buffers.
        dims: Extents that specs name, such as `f32[N,3]`.

    Raises:
        ToposError: As in `trace`; ConfigurationError TP504 too: an extent without a value.
    """
    named = dict(named or {})
    entry = entry_of(function)
    if entry is not None and not positional and not named:
        positional, named = entry.positional, dict(entry.specs)
    recorder = Recorder(sources)
    if isinstance(function, type):
        function = guarded(recorder, function, (), {})
    bound = bind(function, positional, named)
    code = recorder.locator.entry = code_of(function)
    with collector_paused(), recording(recorder):
        place_inputs(recorder, bound, arguments_of(code, recorder.sources), dims)
        # not sooner: the weights that a class draws when it is built are its own
        recorder.random = RandomStates(inspect.unwrap(function))
        with generators_noted(recorder.random):
            result = guarded(recorder, function, bound.args, bound.kwargs)
        if recorder.last_error is not None:
            refuse_swallowed(recorder.last_error, recorder.last_place, recorder.sources)
        returned = returned_at(code, recorder.sources)
        with recorder.at(returned) if returned is not None else nullcontext():
            structure, leaves = flatten(recorder, result)
        if not leaves and not recorder.observations and recorder.inputs:
            entry_input = Value(recorder, recorder.inputs[0], recorder.ops[recorder.inputs[0]].type)
            recorder.note("TP703", entry_input, NOTHING_RETURNED)
        recorder.note_last_draws(leaves)
        return finish(recorder, structure, leaves, code)


def guarded(
    recorder: Recorder, function: Callable[..., Any], arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> Any:
    """Calls user code; whatever it raises becomes an error with a place."""
    try:
        return call_user(function, arguments, keywords)
    except ToposError:
        raise
    except Exception as error:
        raise _explained(recorder, error) from error


def _explained(recorder: Recorder, error: Exception) -> TraceError:
    """Gives our own error back where NumPy replaced it, else says where the user's code raised."""
    span = _raised_at(recorder, error.__traceback__)
    ours = recorder.last_error
    if ours is not None and (
        _caused_by(error, ours) or (span is not None and ours.span is not None and _same_lines(span, ours.span))
    ):
        return ours
    related = (ours.span,) if ours is not None and ours.span is not None else ()
    text = said(error)
    message = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return TraceError(with_remedy(f"the function raised {message}", error), code="TP402", span=span, related=related)


def _caused_by(error: BaseException, ours: RecordingError) -> bool:
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        each = pending.pop()
        if each is ours:
            return True
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            pending += [each.__cause__, each.__context__]
    return False


def _same_lines(a: Span, b: Span) -> bool:
    return a.path == b.path and a.line <= b.end_line and b.line <= a.end_line


def _raised_at(recorder: Recorder, traceback: TracebackType | None) -> Span | None:
    """Gives the innermost frame that is the user's own."""
    found: Span | None = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if role_of(code) == "user":
            found = frame_of(code, traceback.tb_lasti, recorder.sources).span
        traceback = traceback.tb_next
    return found
