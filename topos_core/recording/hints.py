"""What to do about an exception of user code whose own text does not say."""

from __future__ import annotations

import difflib
import re
import sys
from types import ModuleType
from typing import Final

from topos_core.errors import said

_IMPORTED: Final = re.compile(r"cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)'")


def remedy(error: BaseException) -> str | None:
    """Gives the remedy for an exception; None where its own text has to do."""
    text = said(error)
    match error:
        case RecursionError():
            return "a function calls itself without an end here; end it by what is known while recording: a number, a shape"
        case AttributeError() if isinstance(error.obj, ModuleType):
            return _named(str(error.name), error.obj)
        case ImportError() if found := _IMPORTED.match(text):
            module = sys.modules.get(found["module"])
            return None if module is None else _named(found["name"], module)
        case TypeError() if text.startswith("data type ") and text.endswith("not understood"):
            return "write a dtype that NumPy has, such as 'float32', 'f4' or np.float32"
    return None


def with_remedy(message: str, error: BaseException) -> str:
    """Appends the remedy to a message, where there is one."""
    found = remedy(error)
    return message if found is None else f"{message}; {found}"


def _named(name: str, module: ModuleType) -> str:
    near = difflib.get_close_matches(name, dir(module), 1, 0.8)
    return f"did you mean {module.__name__}.{near[0]}?" if near else f"dir({module.__name__}) lists what it has"
