"""Measures how soon real models are planned: from a fresh process, by a warm agent, and when nothing changed.

    python -m benchmarks.models [--repeat N] [fresh] [phases] [warm] [decoder]

BERT-base is planned by `topos plan`, then where that time goes is told, phase by phase, in a fresh process without an agent;
then by the agent that an editor keeps, whose file is edited. A decoder of 7 billion parameters is planned by `topos plan`, with
its memory. Seconds are wall time beside processor time of all processes; the load average is printed, since wall times count it.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from importlib.metadata import version
from pathlib import Path
from typing import Final

from topos_core.session.client import Agent
from topos_core.session.limits import Limits

NETS: Final = """\
import os
os.environ["HF_HUB_OFFLINE"] = "1"
from transformers import BertConfig, BertModel, LlamaConfig, LlamaModel


# topos: entry inputs=input_ids=i64[1,128]<30522
def bert():
    return BertModel(BertConfig())


# topos: entry inputs=input_ids=i64[1,128]<32000
def llama_7b():
    return LlamaModel(LlamaConfig(use_cache=False))
"""

PHASES: Final = """\
import time

begun = [time.perf_counter()]


def told(phase):
    begun.append(time.perf_counter())
    print(f"  {phase:28} {begun[-1] - begun[-2]:6.2f} s")


import topos_core as tp
told("import topos")
import torch
told("import torch")
import transformers
from transformers import BertConfig, BertModel
told("import transformers's BERT")
import topos_core.importers.torch_export.record
told("import the importer")
spent, export = [], torch.export.export


def timed(*positional, **named):
    start = time.perf_counter()
    try:
        return export(*positional, **named)
    finally:
        spent.append(time.perf_counter() - start)


torch.export.export = timed
tape = tp.load("nets.py:bert", input_ids="i64[1,128]<30522")
told("trace")
print(f"    of which torch.export      {sum(spent):6.2f} s")
plan = tp.plan(tape, machine="reference")
told("search and plan")
plan.document()
told("document")
"""

PARTS: Final = ("fresh", "phases", "warm", "decoder")
OPTIONS: Final = {"machine": "reference", "sources": False}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=2, help="fresh processes, and edits")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)}; all without any")
    arguments = parser.parse_args()
    repeat, parts = arguments.repeat, arguments.parts or PARTS
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no part is called {min(unknown)}; there are {', '.join(PARTS)}")
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers"))
    print(f"Python {platform.python_version()}, {packages}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "nets.py").write_text(NETS, encoding="utf-8")
        for _ in range(repeat if "fresh" in parts else 0):
            print(f"BERT-base, fresh process: {_planned(root, 'bert')}", flush=True)
        if "phases" in parts:
            print("BERT-base, where it goes:", flush=True)
            subprocess.run([sys.executable, "-c", PHASES], cwd=root, env=_environment(), check=True)
        if "warm" in parts:
            _warm(root, repeat)
        if "decoder" in parts:
            print(f"decoder of 7 billion parameters, fresh process: {_planned(root, 'llama_7b')}")
    print(f"load afterwards {os.getloadavg()[0]:.1f}")


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _planned(root: Path, entry: str) -> str:
    """Plans an entry by the command line, and tells its seconds, processor seconds and peak memory."""
    command = [sys.executable, "-m", "topos_core.cli", "plan", f"nets.py:{entry}"]
    before, started = os.times(), time.perf_counter()
    process = subprocess.Popen(
        command, cwd=root, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    peaks: dict[int, int] = {}
    watcher = threading.Thread(target=_watch, args=(process, peaks))
    watcher.start()
    output, errors = process.communicate()
    seconds, after = time.perf_counter() - started, os.times()
    watcher.join()
    if process.returncode or "contains linear" not in output:
        raise SystemExit(f"topos plan {entry} ended with {process.returncode}: {(errors or output)[-500:]}")
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    memory = f"{sum(peaks.values()) // 1024} MiB at most" if peaks else "memory not known here"
    return f"{seconds:.2f} s ({spent:.2f} s of processor time, {memory} in all processes)"


def _watch(process: subprocess.Popen[str], peaks: dict[int, int]) -> None:
    """Notes the largest resident size of a process and of what it started, in KiB, as Linux counts it; pages that two share count twice."""
    if not Path("/proc/self/status").exists():
        return
    while process.poll() is None:
        pending = [process.pid]
        while pending:
            number = pending.pop()
            try:
                children = Path(f"/proc/{number}/task/{number}/children").read_text(encoding="ascii")
                status = Path(f"/proc/{number}/status").read_text(encoding="utf-8")
            except OSError:  # it ended in between
                continue
            pending += [int(each) for each in children.split()]
            peaks[number] = next(
                (int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), peaks.get(number, 0)
            )
        time.sleep(0.1)


def _warm(root: Path, repeat: int) -> None:
    """Traces an edited file by the agent that an editor keeps, and asks again for what did not change."""
    with Agent(str(root), limits=Limits(seconds=120), warming=True) as agent:
        agent.hello()
        target = ""
        for edit in range(repeat + 1):
            started = time.perf_counter()
            reply = agent.trace("nets.py", NETS + "#" * edit, entries=["bert"], options=OPTIONS)
            seconds = time.perf_counter() - started
            if "error" in reply or "error" in reply["entries"][0]:
                raise SystemExit(f"the agent does not trace BERT-base: {reply}")
            target = reply["entries"][0]["target"]
            print(f"BERT-base, {'an edit' if edit else 'the first trace'} in a warm agent: {seconds:.2f} s", flush=True)
            if not edit:
                time.sleep(5)  # meanwhile the warm process imports what the first trace imported
        for _ in range(repeat):
            started = time.perf_counter()
            reply = agent.replan(target, OPTIONS)
            if "document" not in reply:
                raise SystemExit(f"the agent does not plan BERT-base again: {reply}")
            print(f"BERT-base, nothing changed: {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
