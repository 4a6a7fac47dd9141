"""The client's end of the warm process: starts it, shakes hands, has it fork workers, and closes it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from typing import IO, Any, Final

import topos_core
from topos_core.errors import ConfigurationError, TraceError
from topos_core.session import processes
from topos_core.session.conversation import Cancelled, Conversation, Lost
from topos_core.session.limits import Limits
from topos_core.session.messages import PROTOCOL, Decoder, MessageError, encode
from topos_core.session.roots import left_root
from topos_core.session.version import VERSION

_START_SECONDS: Final = 60.0
_END_SECONDS: Final = 2.0


class WarmProcess:
    """The process that `session/bootstrap.py` becomes, as this process sees it."""

    def __init__(self, interpreter: str, root: str, limits: Limits) -> None:
        if os.name != "posix":
            raise ConfigurationError(
                f"code cannot be run on {os.name}: topos forks a process for each trace; use WSL, Linux or macOS",
                code="TP501",
            )
        self._control, theirs = socket.socketpair()
        core = os.path.dirname(os.path.abspath(topos_core.__file__))
        settings = {
            "control": theirs.fileno(), "core": core, "network": limits.network, "memory": limits.memory, "root": root,
            "fork": limits.fork,
        }  # fmt: skip
        self._interpreter = interpreter
        self._root = root
        self._limits = limits
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed in close()
        self._lock = threading.Lock()
        self._hello: dict[str, Any] | None = None
        self._warmed: set[str] = set()
        self._closed = False
        bootstrap = os.path.join(core, "session", "bootstrap.py")
        try:
            self._process = subprocess.Popen(
                [interpreter, bootstrap, json.dumps(settings)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                cwd=root,
            )
        except OSError as error:
            self._control.close()
            self._errors.close()
            if not os.path.isdir(root):
                raise left_root(root, error) from error
            raise ConfigurationError(
                f"the interpreter {interpreter} cannot be started in {root} ({error.strerror}); "
                "correct `interpreter` in the user's settings",
                code="TP501",
            ) from error
        finally:
            theirs.close()

    def alive(self) -> bool:
        """Says whether the process still runs."""
        return self._process.poll() is None

    def hello(self) -> dict[str, Any]:
        """Waits for its first words and gives them."""
        with self._lock:
            if self._hello is None:
                self._hello = self._handshake()
            return self._hello

    def fork(self, identity: int, path: str) -> Conversation:
        """Has a worker forked for a file, and gives our end of it.

        Raises:
            Lost: The process is gone.
        """
        self.hello()
        ours, channel = socket.socketpair()
        output_read, output_write = os.pipe()
        report_read, report_write = os.pipe()
        try:
            with self._lock:
                descriptors = [channel.fileno(), output_write, report_write]
                socket.send_fds(self._control, [encode({"do": "fork", "id": identity})], descriptors)
        except OSError as error:
            for descriptor in (output_read, report_read):
                os.close(descriptor)
            ours.close()
            raise Lost(self) from error
        finally:
            channel.close()
            os.close(output_write)
            os.close(report_write)
        return Conversation(self, identity, ours, output_read, report_read, self._root, path, self._limits)

    def kill(self, identity: int, reason: str) -> None:
        """Has a worker killed with its children; does not wait."""
        with self._lock, contextlib.suppress(OSError):  # a process that is gone took its workers along
            self._control.sendall(encode({"do": "kill", "id": identity, "reason": reason}))

    def warm(self, modules: Sequence[str]) -> None:
        """Has the process import modules that a trace imported, once, so that later forks have them; does not wait."""
        new = [name for name in modules if name not in self._warmed]
        if new:
            self._warmed.update(new)
            with self._lock, contextlib.suppress(OSError):
                self._control.sendall(encode({"do": "warm", "modules": new}))

    def close(self) -> None:
        """Closes the control socket, on which the process ends its workers and itself; kills it if it does not.

        One that nobody has heard yet has no workers and may import for seconds before it looks: it is killed at once.
        """
        self._closed = True
        if self._hello is None:
            processes.kill_tree(self._process.pid)
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)  # who waits for its first words in another thread wakes up
        self._control.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            processes.kill_tree(self._process.pid)
            self._process.wait()
        self._errors.close()

    def _handshake(self) -> dict[str, Any]:
        self._control.settimeout(_START_SECONDS)
        decoder = Decoder()
        frames: Sequence[dict[str, Any]] = ()
        try:
            while not frames:
                data = self._control.recv(65536)
                if not data:
                    raise self._died()
                frames = decoder.feed(data)
        except (OSError, MessageError) as error:
            raise self._died() from error
        finally:
            with contextlib.suppress(OSError):  # closed meanwhile
                self._control.settimeout(None)
        first = frames[0]
        if "error" in first:
            raise TraceError(str(first["error"]["message"]), code=str(first["error"]["code"]))
        hello = first.get("hello", {})
        if (hello.get("protocol"), hello.get("version")) != (PROTOCOL, VERSION):
            raise TraceError(
                f"the agent speaks protocol {hello.get('protocol')} of topos {hello.get('version')}, this is protocol "
                f"{PROTOCOL} of topos {VERSION}; restart the editor or server",
                code="TP409",
            )
        return dict(hello)

    def _died(self) -> ConfigurationError | Cancelled:
        if self._closed:  # it ended because we ended it
            return Cancelled()
        try:
            status = self._process.wait(_END_SECONDS)
            self._errors.seek(0)
            lines = self._errors.read(64 * 1024).decode("utf-8", "replace").strip().splitlines()
        except subprocess.TimeoutExpired:
            status, lines = None, ["it gave no sign of life"]
        except ValueError:
            return Cancelled()  # the agent was closed meanwhile
        last = lines[-1] if lines else "it printed nothing"
        return ConfigurationError(
            f"the interpreter {self._interpreter} ended with status {status} before it could run anything: {last}",
            code="TP501",
        )
