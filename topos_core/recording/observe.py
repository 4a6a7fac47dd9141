"""`tp.observe`: asks for a value by name, without changing the program."""

from __future__ import annotations

from typing import TypeVar

from topos_core.recording.recorder import CURRENT
from topos_core.recording.value import Value

T = TypeVar("T")


def observe(value: T, name: str | None = None) -> T:
    """Records that somebody reads `value` here, and gives it back; outside of a trace it only gives it back.

    Raises:
        RecordingError: What is observed while recording is no recorded value, or one of another trace.
    """
    if isinstance(value, Value):
        recorder = value.recorder
        recorder.observe(value, "observe", name)
        if name is not None:
            recorder.names.setdefault(value.index, name)
        return value
    recorder_now = CURRENT.get()
    if recorder_now is not None and isinstance(value, (tuple, list, dict)):
        raise recorder_now.error(f"observe takes one value, not a {type(value).__name__}; observe each of its values")
    return value
