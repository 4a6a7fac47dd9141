"""The one file that a foreign interpreter runs: standard library only, and readable by Python 3.6.

    python bootstrap.py '{"control": FD, "core": FOLDER, "network": false, "memory": 4294967296, "root": FOLDER, "fork": true}'

It takes the network away before anything starts a thread, makes `topos_core` importable from its own folder alone
(nothing else of that folder's parent is), and hands over to `topos_core.session.supervisor`. With `"worker"` in its settings it becomes one worker instead, for a
supervisor that cannot fork.
"""

import sys

if sys.path and sys.path[0] == __file__.rpartition("/")[0]:  # a script's folder; `-P` is unknown before Python 3.11
    del sys.path[0]

import json
import os
import struct
import types


def main() -> None:
    """Reads the settings from the command line and becomes the supervisor, or says why it cannot."""
    settings = json.loads(sys.argv[1])
    control = settings["control"]
    try:
        _start(settings)
        if "worker" in settings:
            _work(settings, **settings["worker"])
        else:
            _supervise(settings)
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
    # Before NumPy: its BLAS starts threads, and a process with threads cannot enter a user namespace.
    if "worker" not in settings and not settings["network"]:  # a worker is in its supervisor's network already
        isolation = _load("topos_isolation", os.path.join(settings["core"], "session", "isolation.py"), None)
        settings["online"] = isolation.leave_network()
    try:
        import numpy  # noqa: F401  # what else topos needs is imported where it is needed, and told there
    except ImportError as error:
        raise _Unusable(
            "TP409",
            f"the interpreter {sys.executable} has no numpy ({error}); install it there, "
            "or choose another interpreter in the user's settings",
        ) from error
    _load("topos_core", os.path.join(settings["core"], "__init__.py"), [settings["core"]])


def _supervise(settings: dict) -> None:
    from topos_core.session import supervisor

    supervisor.main(settings, settings.get("online"))


def _work(settings: dict, parent: int, channel: int, output: int, stack: int) -> None:
    from topos_core.session import worker

    for descriptor in (channel, output, stack):
        os.set_inheritable(descriptor, False)
    worker.main(parent, channel, output, stack, settings)


def _load(name: str, file: str, folders: "list | None") -> "types.ModuleType":
    """Imports one module from its file; a package's other modules are then found in `folders`, and nothing else is."""
    import importlib.util

    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _send(descriptor: int, message: dict) -> None:
    body = json.dumps(message).encode()
    os.write(descriptor, struct.pack(">I", len(body)) + body)


if __name__ == "__main__":
    main()
