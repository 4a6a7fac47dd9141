"""Compiles kernels side by side: whoever waits for one compiles, and processes of our own take what else is asked for.

numba and LLVM hold the interpreter's lock while they compile, so threads would take turns. A process is started once
more than one kernel waits and the machine has processors for it, takes one job after the other, and ends with the work.
It gets our own search path, reads names and writes object code; it never runs what it compiled. Whatever fails there is
compiled here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from topos_core.kernels.host import Host

IDLE_SECONDS: Final = 0.5
"""How long a process waits for further work."""
REPORT_SECONDS: Final = 0.2
PATIENCE_SECONDS: Final = 20.0
"""How long a job may be with a process before whoever waits for it does it too: a process may have been stopped."""
SERVE: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.stdin.buffer.readline());"
    "from topos_core.kernels.compiling import serve; serve(sys.stdin.buffer, sys.stdout.buffer)"
)

Compile = Callable[[str, tuple[str, ...], Host], bytes]
Report = Callable[[str, int, int], None]
_REPORT: ContextVar[Report | None] = ContextVar("topos_compiling_report", default=None)


@contextmanager
def reporting(report: Report) -> Iterator[None]:
    """Tells `report(title, done, total)` while this context waits for kernels."""
    token = _REPORT.set(report)
    try:
        yield
    finally:
        _REPORT.reset(token)


@dataclass(slots=True, eq=False)
class Job:
    """One kernel that is to be compiled.

    Args:
        name, variant, target: Which kernel, for which machine.
        keep: Is given the object code, once.
        code: The object code, once somebody has done it.
        problem: What went wrong when somebody compiled it here.
    """

    name: str
    variant: tuple[str, ...]
    target: Host
    keep: Callable[[bytes], None]
    code: bytes | None = None
    problem: Exception | None = None


class Compiler:
    """The jobs of one process.

    Args:
        here: Compiles in this process.
        processes: How many processes may help.
    """

    def __init__(self, here: Compile, processes: int) -> None:
        self.here, self.processes = here, processes
        self.process = os.getpid()
        self.changed = threading.Condition()
        self.waiting: deque[Job] = deque()
        self.helpers = self.done = self.total = 0

    def submit(self, job: Job) -> Job:
        """Takes a job; it is begun by the first who waits for it, or by a process."""
        with self.changed:
            if self.done == self.total:
                self.done = self.total = 0
            self.total += 1
            self.waiting.append(job)
            self.changed.notify_all()
            if len(self.waiting) > 1 and self.helpers < self.processes:
                self.helpers += 1
                threading.Thread(target=self._help, name="topos compiler", daemon=True).start()
        return job

    def result(self, job: Job) -> bytes:
        """Gives a job's object code; compiles others while a process has this one."""
        if os.getpid() != self.process:  # forked meanwhile: nobody else works on it
            return job.code if job.code is not None else self.here(job.name, job.variant, job.target)
        report, waited = _REPORT.get(), 0.0
        while True:
            with self.changed:
                if report is not None:
                    report("compiling kernels", self.done, self.total)
                if job.code is not None:
                    return job.code
                if job.problem is not None:
                    raise job.problem
                mine = job if job in self.waiting else self.waiting[0] if self.waiting else None
                if mine is None and waited < PATIENCE_SECONDS:
                    self.changed.wait(REPORT_SECONDS)
                    waited += REPORT_SECONDS
                    continue
                if mine is not None:
                    self.waiting.remove(mine)
            mine = mine or job
            try:
                self._finish(mine, self.here(mine.name, mine.variant, mine.target))
            except Exception as problem:
                mine.problem = problem  # whoever needs it is told
            except BaseException:
                self._give_back(mine)
                raise

    def _finish(self, job: Job, code: bytes) -> None:
        with self.changed:
            if job.code is not None:
                return
            job.code = code
            self.done += 1
            self.changed.notify_all()
        job.keep(code)

    def _give_back(self, job: Job) -> None:
        with self.changed:
            self.waiting.append(job)
            self.changed.notify_all()

    def _help(self) -> None:
        """Passes jobs to one process until there are none."""
        job: Job | None = None
        try:
            with _child() as child:
                while (job := self._next()) is not None:
                    request = {"name": job.name, "variant": job.variant, "target": asdict(job.target)}
                    child.stdin.write(json.dumps(request).encode() + b"\n")
                    child.stdin.flush()
                    size = int(child.stdout.readline())
                    code = child.stdout.read(size)
                    if len(code) != size:
                        raise OSError("the process ended")
                    self._finish(job, code)
        except (OSError, ValueError):  # no process to be had, or it ended: what it had is compiled here
            self.processes = 0
            if job is not None:
                self._give_back(job)
        finally:
            with self.changed:
                self.helpers -= 1

    def _next(self) -> Job | None:
        with self.changed:
            self.changed.wait_for(lambda: bool(self.waiting), IDLE_SECONDS)
            return self.waiting.popleft() if self.waiting else None


@contextmanager
def _child() -> Iterator[Any]:
    """Starts a process that compiles; it ends when its input does."""
    with subprocess.Popen(
        [sys.executable, "-I", "-c", SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        assert child.stdin is not None
        child.stdin.write(json.dumps([path or os.getcwd() for path in sys.path]).encode() + b"\n")
        child.stdin.flush()
        yield child


def serve(requests: Any, replies: Any) -> None:
    """Compiles what it reads, one request a line; a kernel that cannot be compiled ends the process."""
    from topos_core.kernels.library import compile_kernel

    for line in requests:
        request = json.loads(line)
        code = compile_kernel(request["name"], tuple(request["variant"]), Host(**request["target"]))
        replies.write(b"%d\n" % len(code) + code)
        replies.flush()


def processors() -> int:
    """Counts the processors on which processes of ours may compile beside this one."""
    if not Path(sys.executable or "").name.startswith("python"):  # embedded: the executable is somebody else's program
        return 0
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return count - 1


@cache
def compiler(process: int, here: Compile) -> Compiler:
    """Gives the compiler of a process; a forked child has its own."""
    return Compiler(here, processors())
