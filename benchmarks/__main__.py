"""Measures the workloads on topos and on six peers, and writes docs/BENCHMARKS.md with its picture.

    python -m benchmarks                         every workload, one thread and all of them
    python -m benchmarks --rounds 3              fewer turns for each contender, which takes less time
    python -m benchmarks --only conv3_56 bert    some; the others keep the figures that they have
    python -m benchmarks --resume                what a run that was ended did not get to
    python -m benchmarks --report                writes the page from the figures that there are

Every row is kept in benchmarks/results/, one file a processor, as soon as it is measured, and the page is written even if the
run is ended; so a machine that is free for minutes only can be used in slices.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from llvmlite.binding import get_host_cpu_name

from benchmarks.workloads.catalog import Workload, workloads
from benchmarks.workloads.report import slug, write_report
from topos_core.run.bench.contender import Contender, save_case
from topos_core.run.bench.measuring import Process, measure, processes
from topos_core.run.interpreter import interpret
from topos_core.run.widened import widen_array, widened

HERE = Path(__file__).parent
RESULTS = HERE / "results"
FORMS = "benchmarks.workloads"
PACKAGES = ("numpy", "numba", "llvmlite", "torch", "jax", "jaxlib", "onnxruntime", "openvino")


def contenders(names: list[str] | None) -> list[Contender]:
    """Lists topos and the variants of its peers; a peer's best variant counts. A maker refuses what makes no difference."""
    made = [
        ("topos", "trace, plan, run; results from the pool", "topos_form:home", {}),
        ("numpy", "the same code in NumPy, op by op", "topos_form:recorded", {}),
        ("torch", "torch's modules and functions", "torch_form:runner", {}),
        ("torch.compile", "compiled, weights frozen", "torch_form:runner", {"compiled": True}),
        ("jax", "jax.jit, weights are constants", "jax_form:runner", {}),
        ("onnxruntime", "an ONNX graph; fresh results", "onnx_form:onnxruntime", {}),
        ("onnxruntime bound", "an ONNX graph; results into the same buffers", "onnx_form:onnxruntime", {"bound": True}),
        ("openvino", "an ONNX graph in f32; results stay in its buffers", "onnx_form:openvino", {}),
        ("torch last", "channels last", "torch_form:runner", {"channels_last": True}),
        ("jax last", "channels last", "jax_form:runner", {"channels_last": True}),
    ]
    return [
        Contender(name, compares, f"{FORMS}.{maker}", arguments)
        for name, compares, maker, arguments in made
        if names is None or name in names
    ]


def measured(
    crew: Sequence[Process], workload: Workload, threads: int, rounds: int, seconds: float, cases: Path
) -> dict[str, dict[str, Any]]:
    """Measures one workload; gives its figures by contender. `cases` keeps float64's answers for other numbers of threads."""
    from benchmarks.workloads.topos_form import traced

    case = cases / workload.name
    if not case.exists():
        tape, inputs = traced(workload)
        save_case(case, tape, [], interpret(widened(tape), [widen_array(each) for each in inputs]))
    figures = measure(
        crew, case, threads, rounds=rounds, seconds=seconds, progress=_progress, title=workload.name,
        arguments={"workload": workload.name},
    )  # fmt: skip
    refused = "makes no difference here"
    return {each.contender: each.to_json() for each in figures if refused not in (each.failure or "")}


def machine() -> dict[str, Any]:
    """Tells what figures were measured on; LLVM's name tells processors apart that give themselves the same one."""
    names = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    return {
        "processor": f"{names[0] if names else platform.processor()} ({get_host_cpu_name()})",
        "processors": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="WORKLOAD")
    parser.add_argument(
        "--with", dest="names", nargs="+", metavar="NAME", help="some contenders; prints, keeps nothing"
    )
    parser.add_argument("--threads", nargs="+", type=int, metavar="N")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.15, help="length of a turn")
    parser.add_argument("--resume", action="store_true", help="leaves out what the last whole run has measured")
    parser.add_argument("--report", action="store_true", help="writes the page only")
    options = parser.parse_args()
    known = workloads()
    wrong = next((name for name in options.only or () if name not in known), None)
    if wrong is not None:
        parser.error(f"no workload is called {wrong!r}; there are {', '.join(known)}")
    chosen = [known[name] for name in options.only or known]
    counts = options.threads or sorted({1, machine()["processors"]})
    keeps = options.names is None
    if options.report:
        _write_page()
        return
    if keeps and not options.resume and not options.only:
        _write({**_results(), "begun": time.time()})
    with tempfile.TemporaryDirectory() as cases, _page_in_the_end(keeps):
        for threads in counts:
            left = [each for each in chosen if not (options.resume and _is_done(each.name, threads))]
            if not left:
                continue
            with processes(contenders(options.names), threads) as crew:
                for workload in left:
                    figures = measured(crew, workload, threads, options.rounds, options.seconds, Path(cases))
                    _print(workload, threads, figures)
                    if keeps:
                        _keep(workload.name, threads, figures)


@contextmanager
def _page_in_the_end(keeps: bool) -> Iterator[None]:
    """Writes the page when all is measured, and also when the run is interrupted or terminated."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        if keeps:
            _write_page()


def _write_page() -> None:
    """Writes the page from the figures of every processor that was measured."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))]
    write_report([each for each in found if each["figures"]], HERE.parent / "docs")


def _own() -> Path:
    """Gives the file of this processor's figures."""
    return RESULTS / f"{slug(machine())}.json"


def _results() -> dict[str, Any]:
    own = _own()
    found: dict[str, Any] = json.loads(own.read_text(encoding="utf-8")) if own.exists() else {"figures": {}}
    return found


def _write(results: dict[str, Any]) -> None:
    """Replaces the file in one step: a run that is killed leaves the old figures or the new ones."""
    own = _own()
    own.parent.mkdir(exist_ok=True)
    fresh = own.with_suffix(".new")
    fresh.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    fresh.replace(own)


def _is_done(name: str, threads: int) -> bool:
    results = _results()
    taken: float = results.get("taken", {}).get(name, {}).get(str(threads), 0.0)
    return taken > float(results.get("begun", 0.0))


def _keep(name: str, threads: int, figures: dict[str, Any]) -> None:
    results = _results()
    results["machine"] = machine()
    results["figures"].setdefault(name, {})[str(threads)] = figures
    results.setdefault("taken", {}).setdefault(name, {})[str(threads)] = time.time()
    if hasattr(os, "getloadavg"):
        load, loads = round(os.getloadavg()[0], 1), results.setdefault("loads", {}).setdefault(name, {})
        loads.pop(str(threads), None)
        if load > threads + 0.5:
            loads[str(threads)] = load
    _write(results)


def _print(workload: Workload, threads: int, figures: dict[str, Any]) -> None:
    words = []
    for name, figure in figures.items():
        if figure["seconds"] is None:
            words.append(f"{name}: {figure['failure']}")
        else:
            times, error = figure["seconds"], figure["error"]
            words.append(
                f"{name} {times['median'] * 1e3:.3f} ({times['minimum'] * 1e3:.3f}) e{float(error['relative']):.0e}"
            )
    print(f"{workload.name} T={threads}  " + "  ".join(words), flush=True)


def _progress(title: str, done: int, total: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r[{done}/{total}] {title}".ljust(70))


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


if __name__ == "__main__":
    main()
