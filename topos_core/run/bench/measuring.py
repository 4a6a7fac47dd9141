"""Runs contenders in turns, each in its own process, and sums their times up.

Thread pools clash within one process, and a machine's speed drifts over seconds: so every contender has a process, and a
round gives each of them its turn before the next round starts. With one thread the process' CPU time counts, which a
busy machine inflates little; with several, wall time.
"""

from __future__ import annotations

import json
import os
import selectors
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from topos_core.run.bench.contender import Contender

LEAST: Final = 3
"""Calls of a round, however long they take."""
SETTLE_SECONDS: Final = 0.04
"""Before a turn on several threads: threads of whoever had the last one stay awake for up to 26 ms (OpenBLAS')."""
OVERRIDES: Final = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
"""Settings that may halve NumPy's products; contenders run without them."""
POOLS: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

Report = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Spread:
    """Times of all calls of all rounds, in seconds; `lower` and `upper` are the quartiles."""

    minimum: float
    lower: float
    median: float
    upper: float


@dataclass(frozen=True, slots=True)
class Figure:
    """What one contender was measured to take for one case.

    Args:
        contender: Its name.
        threads: How many threads it could use; the process could run on so many processors.
        clock: `cpu` (the process' CPU time, one thread) or `wall`.
        seconds: None where it failed.
        runs: How many calls were timed.
        rounds: In how many turns.
        first_seconds: Wall time until the first result: loading, compiling and one run.
        error: Largest `absolute` error against float64, and `relative` to the output's magnitude; None without float64.
        failure: Why there are no times.
    """

    contender: str
    threads: int
    clock: str
    seconds: Spread | None
    runs: int
    rounds: int
    first_seconds: float | None
    error: Mapping[str, float] | None
    failure: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Gives plain data; infinite errors become the string `inf`."""
        plain = asdict(self)
        if self.error is not None:
            plain["error"] = {name: figure if figure != float("inf") else "inf" for name, figure in self.error.items()}
        return plain


class Process:
    """One contender's process."""

    def __init__(self, contender: Contender, threads: int, patience: float) -> None:
        self.contender, self.patience = contender, patience
        home = str(Path(__file__).parents[3])  # the child runs this very topos_core, wherever it was started
        code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from topos_core.run.bench.child import main; main()"
        self.printed = tempfile.TemporaryFile()  # noqa: SIM115
        self.child = subprocess.Popen(
            [sys.executable, "-c", code, home, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.printed,
            env=environment(os.environ, threads),
        )

    def ask(self, **command: Any) -> dict[str, Any]:
        """Sends a command and waits for its answer; `failure` where the process ended or took too long."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        try:
            self.child.stdin.write(json.dumps(command).encode() + b"\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            return {"failure": self._ended()}
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.child.stdout, selectors.EVENT_READ)
            if not waiting.select(self.patience):
                self.close()
                return {"failure": f"took longer than {self.patience:.0f} s"}
        line = self.child.stdout.readline()
        if not line:
            return {"failure": self._ended()}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """Ends the process."""
        self.child.kill()
        self.child.wait()
        for stream in (self.child.stdin, self.child.stdout, self.printed):
            if stream is not None:
                stream.close()

    def _ended(self) -> str:
        status = self.child.wait()
        self.printed.seek(0)
        last = self.printed.read()[-2000:].decode("utf-8", "replace").strip().splitlines()
        ended = f"ended by signal {-status}" if status < 0 else f"ended with status {status}"
        return f"{ended}: {last[-1][:200]}" if last else ended


def environment(variables: Mapping[str, str], threads: int) -> dict[str, str]:
    """Gives a contender's environment: pools of so many threads, and BLAS as it chooses for the machine."""
    kept = {name: value for name, value in variables.items() if name not in OVERRIDES}
    return {**kept, **dict.fromkeys(POOLS, str(threads))}


@contextmanager
def processes(contenders: Sequence[Contender], threads: int, patience: float = 300.0) -> Iterator[list[Process]]:
    """Starts a process for each contender and ends them all."""
    started: list[Process] = []
    try:
        for contender in contenders:
            started.append(Process(contender, threads, patience))
        yield started
    finally:
        for process in started:
            if process.child.returncode is None:
                process.close()


def measure(
    crew: Sequence[Process],
    folder: Path,
    threads: int,
    *,
    rounds: int,
    seconds: float,
    progress: Report,
    title: str = "",
    arguments: Mapping[str, Any] | None = None,
) -> list[Figure]:
    """Measures one case on every process, in turns.

    Args:
        crew: The contenders' processes.
        folder: The case, as `save_case` wrote it.
        threads: How many threads they were started with.
        rounds: How many turns each of them gets.
        seconds: How long a turn is; at least `LEAST` calls are made in it.
        progress: Is told who has its turn.
        title: What is measured, for the progress.
        arguments: Arguments of every maker for this case, beside the contender's own.
    """
    steps = len(crew) * (1 + rounds)
    loaded: list[dict[str, Any]] = []
    for at, process in enumerate(crew):
        progress(f"{title}: {process.contender.name} starts", at, steps)
        contender = process.contender
        loaded.append(
            process.ask(
                do="load",
                maker=contender.maker,
                folder=str(folder),
                arguments={**contender.arguments, **(arguments or {})},
            )
        )
    clock = "cpu" if threads == 1 else "wall"
    times: list[list[float]] = [[] for _ in crew]
    for turn in range(rounds):
        order = range(len(crew)) if turn % 2 == 0 else reversed(range(len(crew)))
        for done, at in enumerate(order):
            if "failure" in loaded[at]:
                continue
            progress(f"{title}: {crew[at].contender.name}", len(crew) * (1 + turn) + done, steps)
            if threads > 1:
                time.sleep(SETTLE_SECONDS)
            answer = crew[at].ask(do="round", seconds=seconds, least=LEAST)
            if "failure" in answer:
                loaded[at] = answer
            else:
                times[at] += answer[clock]
    return [
        _figure(process.contender.name, threads, clock, found, series, rounds)
        for process, found, series in zip(crew, loaded, times, strict=True)
    ]


def _figure(
    name: str, threads: int, clock: str, loaded: Mapping[str, Any], series: Sequence[float], rounds: int
) -> Figure:
    if "failure" in loaded:
        return Figure(name, threads, clock, None, 0, rounds, None, None, loaded["failure"])
    return Figure(
        name, threads, clock, spread(series), len(series), rounds, loaded["first_seconds"], loaded["error"]
    )  # fmt: skip


def spread(series: Sequence[float]) -> Spread:
    """Sums times up."""
    if len(series) == 1:
        return Spread(series[0], series[0], series[0], series[0])
    lower, median, upper = statistics.quantiles(series, n=4, method="inclusive")
    return Spread(min(series), lower, median, upper)
