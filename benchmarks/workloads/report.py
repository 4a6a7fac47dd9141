"""Writes docs/BENCHMARKS.md and its pictures from measured figures, processor by processor; misses of the bars are marked."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.workloads.catalog import Workload, workloads

FAMILIES = {
    "numpy": ("numpy",),
    "torch": ("torch", "torch last"),
    "torch.compile": ("torch.compile",),
    "jax": ("jax", "jax last"),
    "onnxruntime": ("onnxruntime", "onnxruntime bound"),
    "openvino": ("openvino",),
}
"""The six peers and their variants; the faster variant counts."""
ODD_MEAN, ODD_WORST = 1.0, 1.25


class Row(NamedTuple):
    """One workload with some number of threads: topos, every peer's best variant, and the ratio to the best peer."""

    workload: Workload
    topos: Mapping[str, Any]
    peers: Mapping[str, Mapping[str, Any]]
    best: str
    ratio: float

    @property
    def missed(self) -> bool:
        return self.workload.bar is not None and self.ratio > self.workload.bar


def rows(results: Mapping[str, Any], threads: str) -> list[Row]:
    made = []
    for name, workload in workloads().items():
        figures = results["figures"].get(name, {}).get(threads)
        if figures is None or figures["topos"]["seconds"] is None:
            continue
        peers = {}
        for family, variants in FAMILIES.items():
            ran = [figures[each] for each in variants if each in figures and figures[each]["seconds"] is not None]
            if ran:
                peers[family] = min(ran, key=_median)
        best = min(peers, key=lambda family: _median(peers[family]))
        made.append(Row(workload, figures["topos"], peers, best, _median(figures["topos"]) / _median(peers[best])))
    return made


def slug(machine: Mapping[str, Any]) -> str:
    """Names a processor's files: `AMD EPYC` is `amd-epyc`."""
    told = re.sub(r"\((R|TM)\)|\bProcessor\b", " ", str(machine["processor"]), flags=re.IGNORECASE)
    return re.sub(r"[^a-z0-9]+", "-", told.lower()).strip("-") or "unknown"


def write_report(machines: Sequence[Mapping[str, Any]], docs: Path) -> None:
    """Writes the page, one part a processor; the notes on misses stand in benchmarks/notes.md, by hand.

    Args:
        machines: What was measured on each processor: `machine`, `figures` by workload and number of threads, `loads`.
        docs: The folder of the page; pictures go to `images` in it.
    """
    notes = (Path(__file__).parents[1] / "notes.md").read_text(encoding="utf-8")
    lines = list(_head())
    for results in machines:
        machine = results["machine"]
        counts = sorted({count for each in results["figures"].values() for count in each}, key=int)
        picture = f"benchmarks-{slug(machine)}.png"
        lines += _machine(machine, picture)
        for count in counts:
            lines += _section(rows(results, count), count, results.get("loads", {}))
        _draw(rows(results, counts[0]), docs / "images" / picture)
    lines += ["", notes.strip(), ""]
    (docs / "BENCHMARKS.md").write_text("\n".join(lines), encoding="utf-8")


def _head() -> Iterator[str]:
    yield "# Benchmarks"
    yield ""
    yield "`python -m benchmarks` (`make bench`) writes this page; figures are measured, in milliseconds, and stand in"
    yield "`benchmarks/results/` with their quartiles, one file a processor. topos records each program, plans it with the weights bound and runs"
    yield "it; results come fresh from its pool. Every peer runs code that was written for it (`benchmarks/workloads/`): torch's"
    yield "modules eager and compiled with frozen weights, `jax.jit`, ONNX graphs in onnxruntime and in OpenVINO (f32), and the"
    yield "program itself in NumPy. The faster variant of a peer counts: torch and jax in both orders of axes, onnxruntime also"
    yield "with bound results. Contenders have a process each and take turns. One thread: CPU time of the process, pinned to one"
    yield "processor; several: wall time. `relative error` is the largest difference of an output from the program in float64, over the"
    yield "largest magnitude of that output, as plans tell errors. `load` is the load average while a row was measured;"
    yield "`alone`: the machine did nothing else."


def _machine(machine: Mapping[str, Any], picture: str) -> Iterator[str]:
    packages = ", ".join(f"{name} {number}" for name, number in machine["packages"].items())
    yield ""
    yield f"## {machine['processor']}"
    yield ""
    yield f"{machine['processors']} processors, Python {machine['python']}; {packages}."
    yield ""
    yield f"![ratio of topos to the best peer on {machine['processor']}](images/{picture})"


def _section(table: list[Row], threads: str, loads: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    one = threads == "1"
    yield ""
    yield f"### {'One thread, CPU time' if one else f'{threads} threads, wall time'}"
    yield ""
    bar = "bar | " if one else ""
    yield f"| workload | topos median (least) | best peer | ratio | {bar}relative error | that of the best peer | {' | '.join(FAMILIES)} | load |"
    yield "|---" * (7 + one + len(FAMILIES)) + "|"
    for row in table:
        cells = [
            row.workload.title,
            f"{_ms(row.topos)} ({row.topos['seconds']['minimum'] * 1e3:.3g})",
            f"{row.best} {_ms(row.peers[row.best])}",
            f"**{row.ratio:.2f} missed**" if one and row.missed else f"{row.ratio:.2f}",
            *([f"{row.workload.bar:.2f}" if row.workload.bar is not None else ""] if one else []),
            _error(row.topos),
            _error(row.peers[row.best]),
            *(_ms(row.peers[family]) if family in row.peers else "" for family in FAMILIES),
            str(loads.get(row.workload.name, {}).get(threads, "alone")),
        ]
        yield "| " + " | ".join(cells) + " |"
    odd = [row.ratio for row in table if row.workload.bar is None]
    barred = [row for row in table if row.workload.bar is not None]
    yield ""
    if one and barred:
        yield f"{sum(not row.missed for row in barred)} of {len(barred)} bars are reached."
    if odd:
        mean = math.exp(sum(map(math.log, odd)) / len(odd))
        said = f"Odd shapes: geometric mean of the ratios {mean:.2f}, the worst {max(odd):.2f}"
        missed = mean > ODD_MEAN or max(odd) > ODD_WORST
        yield said + (f" (bars {ODD_MEAN:g} and {ODD_WORST:g}{': **missed**' if missed else ''})." if one else ".")


def _median(figure: Mapping[str, Any]) -> float:
    return float(figure["seconds"]["median"])


def _ms(figure: Mapping[str, Any]) -> str:
    return f"{_median(figure) * 1e3:.3g}"


def _error(figure: Mapping[str, Any]) -> str:
    return f"{float(figure['error']['relative']):.1e}"


def _draw(table: list[Row], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 0.8 + 0.28 * len(table)), layout="constrained")
    axes = figure.subplots()
    places = range(len(table))
    colours = ["#b3403a" if row.missed else "#1b7f5c" if row.workload.bar is not None else "#4a6fa5" for row in table]
    axes.barh(places, [row.ratio for row in table], color=colours, height=0.6)
    for place, row in zip(places, table, strict=True):
        if row.workload.bar is not None:
            axes.plot([row.workload.bar] * 2, [place - 0.42, place + 0.42], color="black", linewidth=1.5)
        axes.text(row.ratio + 0.02, place, f"{row.ratio:.2f} of {row.best}", va="center", fontsize=7)
    axes.axvline(1.0, color="#888888", linewidth=0.8)
    axes.set_yticks(places, [row.workload.title for row in table], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, max([1.3, *(row.ratio + 0.4 for row in table)]))
    axes.set_xlabel("time of topos / time of the best peer, one thread, medians (measured); black marks: bars")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)
