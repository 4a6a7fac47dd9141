"""Where modules are built: while user code runs, every `nn.Module` keeps its constructor call's place.

The place stands in the module itself, so that it survives `copy.deepcopy` (nn.TransformerEncoder clones its layer).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

from topos_core.recording.location import role_of

ATTRIBUTE: Final = "_topos_built"
TRAINED: Final = "_topos_trained"


class Built(NamedTuple):
    """A constructor call: the instruction of the caller."""

    code: CodeType
    instruction: int


@contextmanager
def constructions() -> Iterator[None]:
    """Notes constructor calls, and explicit calls of `train`, while torch modules are made.

    Nothing is noted where torch has no `Module.__init__` and `Module.train` to wrap.
    """
    import torch

    module = torch.nn.Module
    initialise, train = module.__init__, module.train
    folder = os.path.dirname(torch.__file__) + os.sep

    def noting(self: Any, *arguments: Any, **keywords: Any) -> None:
        frame = _caller(self, folder)
        initialise(self, *arguments, **keywords)
        if frame is not None:
            self.__dict__[ATTRIBUTE] = Built(frame.f_code, frame.f_lasti)

    def training(self: Any, mode: bool = True) -> Any:
        self.__dict__[TRAINED] = bool(mode)
        return train(self, mode)

    module.__init__ = noting
    module.train = training
    try:
        yield
    finally:
        module.__init__ = initialise
        module.train = train


def built_at(module: Any) -> Built | None:
    """Gives where a module was built, if that was seen."""
    found = getattr(module, "__dict__", {}).get(ATTRIBUTE)
    return found if isinstance(found, Built) else None


def asked_to_train(module: Any) -> bool:
    """Says whether user code put the module into training mode by a call of its own."""
    return bool(module.__dict__.get(TRAINED, False))


def _caller(module: Any, folder: str) -> FrameType | None:
    """Finds the frame that called the constructor: not torch's, not one of the module's own `__init__`s."""
    import sys

    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        own = code.co_name == "__init__" and code.co_argcount and frame.f_locals.get(code.co_varnames[0]) is module
        if not own and not code.co_filename.startswith(folder):
            return frame if role_of(code) in ("user", "framework") else None
        frame = frame.f_back
    return None
