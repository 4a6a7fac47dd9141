"""Plan viewers that the editor asked for: one `topos view` per file, started once, and the addresses of plans and regions in it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import sys
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

import topos_core
from topos_core.errors import ConfigurationError

_START_SECONDS: Final = 30.0
_END_SECONDS: Final = 2.0
_MOST: Final = 4  # viewers at once; the one asked least recently ends

# The viewer ends when its standard input does, and that closes however this process ends.
_PROGRAM: Final = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(0)), daemon=True).start()
from topos_web.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


@dataclass(slots=True)
class _Viewer:
    process: asyncio.subprocess.Process
    address: str
    drain: asyncio.Task[None]

    async def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self.process.stdin is not None:
                self.process.stdin.close()
            try:
                await asyncio.wait_for(self.process.wait(), _END_SECONDS)
            except TimeoutError:
                self.process.kill()
                await self.process.wait()
        self.drain.cancel()


@dataclass(slots=True)
class Viewers:
    """Every viewer by the file that it shows; `framed` is for an editor that shows the page in a panel of its own."""

    framed: bool = False
    _running: OrderedDict[str, _Viewer] = field(default_factory=OrderedDict)
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def url(self, path: str, target: str | None = None, region: str | None = None) -> str:
        """Gives the address of a file's page, at a target's plan and at a region's key.

        Raises:
            ConfigurationError: TP506, the viewer cannot be started; its own words say why.
        """
        async with self._starting:
            viewer = self._running.get(path)
            if viewer is None or viewer.process.returncode is not None:
                viewer = self._running[path] = await _start(path, self.framed)
            self._running.move_to_end(path)
            while len(self._running) > _MOST:
                await self._running.popitem(last=False)[1].end()
        return viewer.address + fragment(target, region)

    async def close(self) -> None:
        """Ends every viewer."""
        ending = [viewer.end() for viewer in self._running.values()]
        self._running.clear()
        await asyncio.gather(*ending)


def fragment(target: str | None, region: str | None) -> str:
    """Gives the part of an address that selects a plan, which the page names by its target's digest, and a region in it."""
    if target is None:
        return ""
    plan = hashlib.sha256(target.encode()).hexdigest()[:8]
    return f"#plan={plan}" + (f"&sel={quote(f'r:{region}', safe='')}" if region is not None else "")


async def _start(path: str, framed: bool) -> _Viewer:
    folder = os.path.dirname(os.path.dirname(os.path.abspath(topos_core.__file__)))
    inherited = os.environ.get("PYTHONPATH")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-c", _PROGRAM, "--no-browser", "--port", "0", *(["--framed"] if framed else []), path,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        start_new_session=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (folder, inherited)))},
    )  # fmt: skip
    assert process.stdout is not None
    said: list[str] = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_START_SECONDS):
            async for line in process.stdout:
                said.append(line.decode("utf-8", "replace").strip())
                if said[-1].startswith("http://"):
                    return _Viewer(process, said[-1], asyncio.create_task(_drain(process.stdout)))
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    reason = said[-1] if said else "it said nothing"
    raise ConfigurationError(f"the viewer did not start: {reason}; try `topos view {path}`", code="TP506")


async def _drain(stream: asyncio.StreamReader) -> None:
    while await stream.read(65536):
        pass
