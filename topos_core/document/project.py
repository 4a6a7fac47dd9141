"""Which project a program belongs to, and what the program is called."""

from __future__ import annotations

import os
from pathlib import Path

from topos_core.document.places import relative_path
from topos_core.tape.tape import Tape


def project_of(tape: Tape) -> str:
    """Finds the folder of the nearest pyproject.toml above the program's first user file."""
    for location in tape.locations:
        for frame in location.frames:
            if frame.kind == "user" and os.path.isabs(frame.span.path):
                for folder in Path(frame.span.path).parents:
                    if (folder / "pyproject.toml").is_file():
                        return str(folder)
                return os.getcwd()
    return os.getcwd()


def target_of(tape: Tape, root: str) -> str:
    """Names a program by the outermost user frame of its last op."""
    for op in reversed(tape.ops):
        frames = [frame for frame in tape.locations[op.location].frames if frame.kind == "user"]
        if frames:
            return f"{relative_path(frames[-1].span.path, root)}:{frames[-1].function}"
    return "tape"
