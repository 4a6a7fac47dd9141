"""Runs a file's text as the module that an import of it would have made."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import linecache
import os
import sys
import warnings
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType

from topos_core.session.entries import split_lines
from topos_core.session.roots import enter_root


def load(path: str, text: str, root: str, code: CodeType | None = None) -> ModuleType:
    """Runs `text` under the file's name, with siblings, the package around it and the project's root importable.

    The text, not the file on disk, is what tracebacks and `inspect.getsource` show. The working directory becomes
    `root`. `__name__` is the module's own, so what stands below `if __name__ == "__main__":` does not run. `code` is what
    `compiled` gave for the text, where somebody had the time.

    Raises:
        ConfigurationError: TP505, the root is gone.
        SyntaxError: The text does not parse.
        BaseException: Whatever the file raises.
    """
    enter_root(root)
    name, folder = module_name(path)
    for entry in (root, folder):  # the folder comes first, as for a script
        if entry in sys.path:
            sys.path.remove(entry)
        sys.path.insert(0, entry)
    linecache.cache[path] = (len(text), None, [line + "\n" for line in split_lines(text)], path)
    loader = _TextLoader(path, text)
    code = code or loader.code()
    if "." in name:
        importlib.import_module(name.rpartition(".")[0])
    is_package = os.path.basename(path) == "__init__.py"
    spec = ModuleSpec(name, loader, origin=path, is_package=is_package)
    spec.has_location = True
    if is_package and spec.submodule_search_locations is not None:
        spec.submodule_search_locations.append(os.path.dirname(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    exec(code, module.__dict__)
    return module


def compiled(path: str, text: str) -> CodeType | None:
    """Compiles a text ahead of `load`; None where the parser has something to say about it, which `load` then tells."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return _TextLoader(path, text).code()
        except (SyntaxError, ValueError, RecursionError, MemoryError, Warning):
            return None


def module_name(path: str) -> tuple[str, str]:
    """Gives the dotted name of a file and the folder from which an import of that name starts.

    A folder with an `__init__.py` is a package. A file whose name is no identifier, or belongs to a module that is
    loaded already or to the standard library, gets a name of its own, since it must not take that module's place.
    """
    folder, file = os.path.split(path)
    stem = os.path.splitext(file)[0]
    parts = [] if stem == "__init__" else [stem]
    while os.path.isfile(os.path.join(folder, "__init__.py")) and os.path.basename(folder).isidentifier():
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    name = ".".join(parts)
    taken = name in sys.modules or parts[0] in sys.stdlib_module_names
    if taken or not all(part.isidentifier() for part in parts):
        readable = "".join(character if character.isidentifier() or character.isdigit() else "_" for character in stem)
        return f"topos_entry_{readable}", os.path.dirname(path)
    return name, folder


class _TextLoader(importlib.abc.InspectLoader):
    """A loader over text that need not be on disk."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text

    def code(self) -> CodeType:
        """Compiles the text under the file's name."""
        return compile(self.text, self.path, "exec", dont_inherit=True)

    def get_source(self, fullname: str) -> str:
        """Gives the text, whatever the file holds by now."""
        return self.text

    def get_filename(self, fullname: str) -> str:
        """Gives the file's name."""
        return self.path

    def create_module(self, spec: ModuleSpec) -> None:
        """Leaves the making of the module to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        """Runs the text again in a module, as a reload does."""
        exec(self.code(), module.__dict__)
