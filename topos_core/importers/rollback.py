"""Takes back what a formula recorded before it gave up, so that an opaque op can stand in its place."""

from __future__ import annotations

from topos_core.recording.recorder import Recorder


def take_back(recorder: Recorder, mark: int) -> None:
    """Removes every value from `mark` on; nobody holds one of them any more."""
    del recorder.ops[mark:]
    recorder.parameters[:] = [value for value in recorder.parameters if value < mark]
    for table in (recorder.names, recorder.defaults, recorder.ranges):
        for value in [value for value in table if value >= mark]:
            del table[value]
    recorder.notes[:] = [note for note in recorder.notes if note.value < mark]
    recorder.captured.clear()
