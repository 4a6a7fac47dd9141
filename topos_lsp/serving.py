"""Runs the server over a pair of streams, and ends it and everything below it when the editor is gone."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from topos_lsp import cache, generated, memory
from topos_lsp.streams import take_streams

if TYPE_CHECKING:
    from topos_lsp.server import Server

_WATCH_SECONDS: Final = 1.0
_SWITCH_SECONDS: Final = (
    0.0005  # a thread that reads a reply lets the loop in, several times an answer; the default is 5 ms
)
_HOST: Final = "127.0.0.1"


def stdio(client: int | None = None) -> int:
    """Serves over standard input and output; gives the exit status."""
    reader, writer = take_streams()
    return _serve(reader, writer, client)


def tcp(port: int, client: int | None = None) -> int:
    """Serves the first editor that connects to a loopback port (0: a free one, told on standard error); gives the exit status.

    Whoever connects can have code run, so another user of the machine is refused where the system tells whose connection it is.
    """
    with socket.create_server((_HOST, port)) as listener:
        print(f"topos lsp: listening on {_HOST}:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
        while True:
            connection, peer = listener.accept()
            if _owner(peer[1]) in (None, _own_user()):
                break
            connection.close()
    with connection:
        stream = connection.makefile("rwb")
        return _serve(cast(BinaryIO, stream), cast(BinaryIO, stream), client)


def watch(process: int) -> None:
    """Ends this process at once when another one is gone: an editor that was killed says nothing.

    What the server started ends by itself when its descriptors close. A process that cannot be seen from here to begin with
    (the editor runs outside of our container) is not watched.
    """
    if not _alive(process):
        return

    def look() -> None:
        while _alive(process):
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=look, name="topos-watch", daemon=True).start()


def _serve(reader: BinaryIO, writer: BinaryIO, client: int | None) -> int:
    _end_on_signals()
    memory.share()
    sys.setswitchinterval(_SWITCH_SECONDS)
    if client is not None:
        watch(client)
    server = _server()
    try:
        server.start_io(reader, writer)
    finally:
        for home in server.homes.forget():
            home.close()
    return 1 if server.protocol.exit_status is None else server.protocol.exit_status


def _end_on_signals() -> None:
    """Has signals end the server at once, with 1, as an editor's death does: what it started ends as its descriptors close.

    An exception would wait for the thread that reads from an editor, which stays silent and connected.
    """

    def end(*_: object) -> None:
        os._exit(1)

    with contextlib.suppress(ValueError):  # only the main thread may take signals
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, end)


def _server() -> Server:
    gc.disable()  # thousands of classes of the protocol are made; collecting meanwhile costs as much again
    try:
        with generated.kept(cache.folder()):
            from topos_lsp.server import Server

            return Server()
    finally:
        gc.enable()
        memory.collect_rarely()


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _own_user() -> int | None:
    return os.getuid() if hasattr(os, "getuid") else None


def _owner(port: int) -> int | None:
    """Gives the user whose socket a loopback port is; None where the system does not tell."""
    try:
        with open("/proc/net/tcp", encoding="ascii") as file:
            rows = [line.split() for line in file][1:]
    except OSError:
        return None
    wanted = f"0100007F:{port:04X}"
    return next((int(row[7]) for row in rows if row[1] == wanted), None)
