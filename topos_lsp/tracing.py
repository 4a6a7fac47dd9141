"""Traces open files as they change: waits for a pause, ends what runs for an older text, keeps the last good plans.

Everything here runs on the server's loop except `_ask`, which blocks on the agent in a thread of its own and makes of its reply what
needs no buffer (`answers.py`): the loop has questions to answer meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from topos_core.document import marks as words
from topos_core.errors import ToposError
from topos_core.session.asking import asked_of_plan
from topos_core.session.client import Cancelled
from topos_core.session.places import error_of
from topos_core.session.suppression import unused_suppressions
from topos_lsp.answers import Answer, again, answer, is_final, now, pack
from topos_lsp.documents import Document, Documents
from topos_lsp.edits import Edit
from topos_lsp.files import Failure, File
from topos_lsp.homes import Home, Homes
from topos_lsp.listening import Listener, Silent, Work
from topos_lsp.memory import trim
from topos_lsp.plan import Plan
from topos_lsp.replies import Replies
from topos_lsp.scanning import scan
from topos_lsp.settings import Settings
from topos_lsp.view import View

logger = logging.getLogger(__name__)

_AGAIN_SECONDS: Final = 0.01
_READING_SECONDS: Final = 0.1  # before the pause ends, marks are read and a process is made ready: what runs nothing
_PACKING_SECONDS: Final = (
    0.5  # after a plan is shown: packing it holds the interpreter for 10 ms, and the editor asks for hints first
)
_TRIMMING_SECONDS: Final = 5.0  # after the last plan: nobody else gets memory while it is given back, for 10 ms
_THREADS: Final = 16  # as many files as may hang at once before another one waits
_PLACE: Final = ("line", "column", "end_line", "end_column")


@dataclass(slots=True)
class Tracing:
    """Every open file that may have entries."""

    homes: Homes
    documents: Documents
    listener: Listener
    settings: Settings = field(default_factory=Settings)
    _files: dict[str, File] = field(default_factory=dict)
    _ending: dict[str, tuple[Future[Any], asyncio.Task[None]]] = field(default_factory=dict)
    _trimming: asyncio.TimerHandle | None = None
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_THREADS, "topos-trace"))

    def file(self, uri: str) -> File | None:
        """Gives what is known of an open file."""
        return self._files.get(uri)

    def files(self) -> list[File]:
        """Lists the open files."""
        return list(self._files.values())

    def plans(self, document: Document) -> Iterator[tuple[File, Plan, View]]:
        """Gives every plan that a buffer sees something of, its own entries' first."""
        own = self._files.get(document.uri)
        others = [each for each in self._files.values() if each is not own]
        for file in (*([own] if own is not None else []), *others):
            for plan in file.plans.values():
                seen = plan.view(document, file.home)
                if seen is not None:
                    yield file, plan, seen

    def opened(self, document: Document) -> None:
        """Starts to follow a buffer, and traces it."""
        known = self._files.get(document.uri)
        if known is not None:  # opened twice: what runs for the older text ends
            self._leave(known)
        home = self.homes.of(document.path)
        replies, ending = home.closed.take(document.path), self._ending.get(document.path)
        file = self._files[document.uri] = File(document, home, replies=replies, work=ending[0] if ending else None)
        self._schedule(file, 0.0, asked=self.settings.trace != "manual")

    def changed(self, document: Document, edits: list[Edit]) -> None:
        """Moves every plan's marks on, and traces after a pause."""
        for file in self._files.values():
            if file.uri == document.uri:
                file.move(edits)
            else:
                for plan in file.plans.values():
                    plan.move(document.uri, edits)
        own = self._files.get(document.uri)
        if own is not None:
            own.interrupted = own.interrupted or own.state == "tracing"
            self._schedule(own, own.pause(self.settings.debounce), asked=self.settings.trace == "change")

    def saved(self, document: Document) -> None:
        """Traces a saved buffer where saving asks for it, and whatever else was traced with the file as it was on disk."""
        own = self._files.get(document.uri)
        if own is not None and self.settings.trace == "save":
            self._schedule(own, 0.0, asked=True)
        self.outdated(document.path, but=document.uri)

    def outdated(self, path: str, but: str | None = None) -> None:
        """Traces the files anew that import a file that changed on disk."""
        root = self.homes.root_of(path)
        for file in self._files.values():
            if file.uri != but and file.home.root == root and file.entries and file.depends_on(path):
                file.replies = Replies()
                self._schedule(file, self.settings.debounce, asked=self.settings.trace != "manual")
        self.homes.outdate(path)

    def closed(self, document: Document) -> None:
        """Ends whatever runs for a buffer and forgets it."""
        file = self._files.pop(document.uri, None)
        if file is not None:
            self._leave(file)
            file.home.closed.keep(document.path, file.replies)
            agent = file.home.running()
            if agent is not None:
                agent.release(document.path)
        for other in self._files.values():
            for plan in other.plans.values():
                plan.forget(document.uri)

    def retrace(self, file: File, *, forced: bool = True) -> None:
        """Traces a file at once; a forced trace does not take a known answer."""
        if forced:
            file.replies = Replies()
        self._schedule(file, 0.0, asked=True)

    def cancel(self, file: File) -> None:
        """Ends a running trace for the user."""
        if file.pending:
            self._stop(file)
            file.state = "cancelled"
            file.mark_stale("", words.cancelled())
            self.listener.changed(file)

    def reopen(self, root: str | None = None) -> None:
        """Ends the agents of one project, or of all, reads its configuration anew and traces its files."""
        affected = [file for file in self._files.values() if root is None or file.home.root == root]
        for file in affected:
            self._stop(file)
        self.listener.reopening()
        for home in self.homes.forget(root):
            self._pool.submit(home.close)
        for home in self.homes.all():
            if home.problems and self.homes.told is not None:
                self.homes.told(home)
        for file in affected:
            file.home = self.homes.of(file.document.path)
            file.replies = Replies()
            self._schedule(file, 0.0, asked=self.settings.trace != "manual")

    async def settled(self, file: File) -> None:
        """Waits until no newer plan of a file is on its way."""
        while file.task is not None and not file.task.done():
            await asyncio.wait([file.task])

    async def ask(self, file: File, plan: Plan, what: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Asks the process that holds a plan's tape: `replan` or `emit`. Its reply may be an `error`.

        Raises:
            ToposError: The agent cannot be used, or does not have the target any more.
            Cancelled: The buffer changed meanwhile.
        """
        seen = plan.view(file.document, file.home)
        if seen is not None and seen.text.source != file.traced_text:  # the plan was taken from what was known before
            file.replies = Replies()
            file.work = self._pool.submit(self._ask, file, seen.text.source, options, Silent())
            await asyncio.wrap_future(file.work)
            file.traced_text = seen.text.source
        agent = file.home.agent()
        ask = agent.replan if what == "replan" else agent.emit
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(ask, plan.target, dict(options)))

    async def close(self) -> None:
        """Ends every trace and every process, and waits until they are gone."""
        for file in self._files.values():
            self._stop(file)
        homes = self.homes.forget()
        await asyncio.gather(*(asyncio.to_thread(home.close) for home in homes))
        self._pool.shutdown(wait=False, cancel_futures=True)

    def options(self, home: Home) -> dict[str, Any]:
        """Gives what is asked of every plan: the editor's word, else the project's, else the fixed machine."""
        return {**asked_of_plan(home.workspace.configuration, self.settings.options()), "sources": True}

    def _schedule(self, file: File, seconds: float, *, asked: bool) -> None:
        self._stop(file)
        file.state = "waiting"
        file.task = asyncio.get_running_loop().create_task(self._run(file, seconds, asked))
        file.task.add_done_callback(_tell_failure)

    def _stop(self, file: File) -> None:
        """Ends what runs for a file; the process that runs its code is killed without waiting for it."""
        task, file.task = file.task, None
        if task is not None and not task.done():
            task.cancel()
        self._end_work(file)

    def _leave(self, file: File) -> None:
        """Ends what runs for a buffer that is gone, however late it begins; the next one of that path waits for that."""
        self._stop(file)
        work, path = file.work, file.document.path
        if work is not None and not work.done():
            ended = asyncio.get_running_loop().create_task(self._no_work(file))
            self._ending[path] = work, ended
            ended.add_done_callback(lambda _: self._forget(path, work))

    def _forget(self, path: str, work: Future[Any]) -> None:
        if path in self._ending and self._ending[path][0] is work:
            del self._ending[path]

    def _end_work(self, file: File) -> None:
        if file.work is not None and not file.work.cancel() and (agent := file.home.running()) is not None:
            agent.cancel(file.document.path)

    async def _no_work(self, file: File) -> None:
        """Waits until nothing runs for a file. The agent may hear of a request only after it was told to cancel it: tell again."""
        while file.work is not None and not file.work.done():
            self._end_work(file)
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _run(self, file: File, seconds: float, asked: bool) -> None:
        pause = asyncio.get_running_loop().time() + seconds
        await asyncio.sleep(seconds - _READING_SECONDS)
        try:
            if await self._read_marks(file):
                if seconds and asked:
                    await self._prepare(file)
                await asyncio.sleep(pause - asyncio.get_running_loop().time())
                await self._no_work(file)
                await self._look(file, asked)
        except ToposError as error:
            self._failed(file, error_of(error, file.document.path, file.home.root))
        self.listener.changed(file)

    async def _look(self, file: File, asked: bool) -> None:
        if not file.entries:
            file.state = "empty"
            file.plans.clear()
            file.failures.clear()
        elif not self.homes.is_trusted(file.document.path):
            file.state = "untrusted"
        elif not asked:
            file.state = "traced" if file.plans else "unasked"
            if not self._is_current(file):
                file.mark_stale("", words.changed_since())
        else:
            await self._trace(file)

    def _is_current(self, file: File) -> bool:
        return file.traced_text == file.document.code

    async def _read_marks(self, file: File) -> bool:
        """Reads the entries of the newest text; where it does not parse that is the failure, if the file is ours at all."""
        text, path = file.document.code, file.document.path
        workspace = file.home.workspace
        try:
            found = await scan(text, path)
        except ToposError as error:
            if not file.entries and "topos_core" not in text and "# topos:" not in text:
                file.state = "empty"
            else:
                self._failed(file, error_of(error, path, file.home.root))
            return False
        file.mark(found, workspace.named(found, path))
        return True

    async def _prepare(self, file: File) -> None:
        """Has the agent get ready for a trace that the end of the pause will ask for; what fails here, that will tell."""
        text = file.document.code
        if not file.entries or self._key(file, text) in file.replies or not self.homes.is_trusted(file.document.path):
            return
        await self._no_work(file)
        file.work = self._pool.submit(lambda: file.home.agent().prepare(file.document.path, text))
        with contextlib.suppress(Cancelled, ToposError):
            await asyncio.wrap_future(file.work)

    async def _trace(self, file: File) -> None:
        options = self.options(file.home)
        text = file.document.code
        key = self._key(file, text)
        replies = file.replies
        known = replies.get(key)
        if known is not None:
            self._take(file, await asyncio.to_thread(again, file, known))
            return
        file.state = "tracing"
        shown = self.listener.working(file)
        begun = time.monotonic()
        try:
            file.work = self._pool.submit(self._ask, file, text, options, shown)
            found = await asyncio.wrap_future(file.work)
        except Cancelled:  # the agent was closed below us: whoever did that says what is next
            file.state = "cancelled"
            return
        finally:
            shown.end()
            file.seconds = max(time.monotonic() - begun, file.seconds if file.interrupted else 0.0)
        file.interrupted = False
        file.traced_text = text
        self._take(file, found)
        if is_final(found.reply):
            replies.keep(key, found.reply)
            asyncio.get_running_loop().call_later(_PACKING_SECONDS, self._pack, replies, key, found.reply)

    def _pack(self, replies: Replies, key: str, reply: Mapping[str, Any]) -> None:
        loop = asyncio.get_running_loop()
        self._later(lambda: loop.call_soon_threadsafe(replies.packed, key, pack(reply)))
        if self._trimming is not None:
            self._trimming.cancel()
        self._trimming = loop.call_later(_TRIMMING_SECONDS, self._later, trim)

    def _later(self, work: Callable[[], object]) -> None:
        with contextlib.suppress(RuntimeError):  # closed meanwhile
            self._pool.submit(work)

    def _ask(self, file: File, text: str, options: Mapping[str, Any], work: Work) -> Answer:
        names = list(file.entries)
        specs = [file.entries[name] for name in names]
        trace = partial(file.home.agent().trace, file.document.path, text, options=options, progress=work.report)
        return answer(file, trace(entries=names, specs=specs))

    def _take(self, file: File, found: Answer) -> None:
        """Takes a reply: each entry has a new plan, or keeps its old one with the reason why there is no newer."""
        reply = found.reply
        if "imports" in reply:
            file.imports = frozenset(reply["imports"])
        if "error" in reply:
            self._failed(file, reply["error"])
            return
        when = now()
        file.failures.clear()
        for entry in reply["entries"]:
            name = entry["target"].rpartition(":")[2]
            if "document" in entry:
                file.plans[name], made = found.plans[name]
                file.plans[name].seen(file.document, made)
            else:
                self._fail(file, name, entry["error"], when)
        file.state = "failed" if file.failures else "traced"
        file.unused = [] if file.failures else _unused(file)  # an entry without a plan may be what a comment is for

    def _failed(self, file: File, error: Mapping[str, Any]) -> None:
        file.failures.clear()
        self._fail(file, "", error, now())
        file.state = "failed"

    def _fail(self, file: File, name: str, error: Mapping[str, Any], now: str) -> None:
        place = None
        rows = (error, *error.get("related", ()))
        row = next((row for row in rows if row.get("path") == file.relative and row.get("line")), None)
        if row is not None:
            place = file.anchors.add(*file.document.text.place(*(row[key] for key in _PLACE)))
        file.failures[name] = Failure(error, place, now)
        file.mark_stale(name, error["message"])

    def _key(self, file: File, text: str) -> str:
        asked = json.dumps([file.entries, self.options(file.home)], sort_keys=True)
        return hashlib.blake2b(f"{asked}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _unused(file: File) -> list[dict[str, Any]]:
    used = frozenset(each for plan in file.plans.values() for each in plan.used)
    switched = frozenset(line for plan in file.plans.values() for line in plan.off)
    unknown = {name: said for plan in file.plans.values() for name, said in plan.off_unknown.items()}
    found = unused_suppressions(file.relative, file.comments(), used, switched, unknown)
    for row in found:
        row["place"] = file.anchors.add(*file.document.text.place(*(row[key] for key in _PLACE)))
    return found


def _tell_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("a trace ended by a bug of topos", exc_info=error)
