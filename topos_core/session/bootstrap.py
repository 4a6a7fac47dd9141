"""The one file that a foreign interpreter runs: standard library only, and readable by Python 3.6.

    python -P bootstrap.py '{"control": FD, "core": FOLDER, "network": false, "memory": 4294967296, "root": FOLDER}'

It takes the network away before anything starts a thread, makes `topos_core` importable from its own folder alone
(nothing else of that folder's parent is), and hands over to `topos_core.session.supervisor`.
"""

import json
import os
import struct
import sys


def main() -> None:
    """Reads the settings from the command line and becomes the supervisor, or says why it cannot."""
    settings = json.loads(sys.argv[1])
    control = settings["control"]
    try:
        _start(settings)
    except _Unusable as reason:
        _send(control, {"error": {"code": reason.code, "message": reason.message}})
        sys.exit(1)


class _Unusable(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def _start(settings: dict) -> None:
    version = sys.version_info
    if version < (3, 11):
        raise _Unusable(
            "TP409",
            f"the interpreter {sys.executable} is Python {version[0]}.{version[1]}, topos needs 3.11 or newer; "
            "choose another one in the user's settings",
        )
    _import_core_from(settings["core"])
    from topos_core.session.isolation import leave_network

    # Before NumPy: its BLAS starts threads, and a process with threads cannot enter a user namespace.
    online = None if settings["network"] else leave_network()
    for name in ("numpy", "ml_dtypes"):
        try:
            __import__(name)
        except ImportError as error:
            raise _Unusable(
                "TP409",
                f"the interpreter {sys.executable} has no {name} ({error}); install it there, "
                "or choose another interpreter in the user's settings",
            ) from error
    from topos_core.session import supervisor

    supervisor.main(settings, online)


def _import_core_from(folder: str) -> None:
    import importlib.util

    spec = importlib.util.spec_from_file_location(
        "topos_core", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["topos_core"] = module
    spec.loader.exec_module(module)


def _send(descriptor: int, message: dict) -> None:
    body = json.dumps(message).encode()
    os.write(descriptor, struct.pack(">I", len(body)) + body)


if __name__ == "__main__":
    main()
