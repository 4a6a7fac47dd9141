"""A buffer that goes while its trace is only about to begin: the trace is ended all the same, and the next one does not wait for it."""

import asyncio
import threading
import time

import pytest

from tests.lsp.models import NORM
from topos_core.session.client import Cancelled
from topos_core.session.messages import failure
from topos_core.session.workspace import open_workspace
from topos_lsp.documents import Document, Documents
from topos_lsp.homes import Home, Homes
from topos_lsp.positions import Text
from topos_lsp.settings import Initial
from topos_lsp.tracing import Tracing


class Late:
    """An agent whose first trace is known to it only once `begun` is set, and then never ends by itself."""

    def __init__(self):
        self.asked, self.begun, self.cancelled, self.second = (threading.Event() for _ in range(4))

    def trace(self, path, text, **_):
        if self.asked.is_set():
            self.second.set()
            return {"error": failure("TP402", "enough"), "output": ""}
        self.asked.set()
        self.begun.wait()
        self.cancelled.wait()
        raise Cancelled

    def cancel(self, path):
        if self.begun.is_set():
            self.cancelled.set()

    def release(self, path):
        pass

    def close(self):
        self.begun.set()
        self.cancelled.set()


class Nobody:
    def changed(self, file): ...

    def working(self, file):
        return self

    def report(self, title, done, total): ...

    def end(self): ...


@pytest.mark.parametrize("closed", [True, False])
async def test_a_trace_that_begins_late_is_ended(tmp_path, closed):
    agent = Late()
    homes = Homes(Initial(untrusted=False))
    homes._homes[str(tmp_path)] = Home(open_workspace(str(tmp_path)), _agent=agent)
    tracing = Tracing(homes, Documents(), Nobody())
    document = Document("file:///a.py", str(tmp_path / "a.py"), 1, Text(NORM))
    tracing.opened(document)
    await _until(agent.asked)
    if closed:
        tracing.closed(document)
    tracing.opened(document)
    await asyncio.sleep(0)
    agent.begun.set()
    await _until(agent.second)
    assert agent.cancelled.is_set()
    await tracing.close()


async def _until(event):
    deadline = time.monotonic() + 20
    while not event.is_set():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)
