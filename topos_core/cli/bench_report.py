"""Renders `topos.bench/1` for people: a table for the model and one for each region measured alone, and a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from topos_core.cli.terminal import Terminal
from topos_core.document.formats.errors import place_of, shown
from topos_core.errors import ConfigurationError

_HEAD = ("", "threads", "median", "quartiles", "least", "against home", "error vs f64, relative", "first result")


def report(result: Mapping[str, Any], terminal: Terminal) -> str:
    """Writes the whole document."""
    host, settings = result["host"], result["settings"]
    load = "" if host["load"] is None else f", load {host['load']:.1f} before the start"
    lines = [
        terminal.paint(shown(result["target"]), "strong")
        + f"  {result['fidelity']}, inputs from {shown(result['inputs'])}",
        f"  {shown(host['processor'])}, {host['processors']} processors{load};"
        f" {settings['rounds']} turn{'' if settings['rounds'] == 1 else 's'} of {settings['seconds']:g} s each; one thread: CPU time, more: wall time (measured)",
    ]
    lines += [f"  {line}" for line in _table(result["model"])]
    for region in result["regions"]:
        if not region["figures"]:
            continue
        count = len(region["alike"])
        alike = f", and {count} alike" if count else ""
        lines.append("")
        lines.append(terminal.paint(shown(region["id"]), "strong") + f" alone{alike}  {place_of(region)}")
        lines += [f"  {line}" for line in _table(region["figures"])]
    lines.append("")
    for contender in result["contenders"]:
        if contender["left_out"] is None:
            lines.append(f"  {contender['name']}: {shown(contender['compares'])} ({shown(contender['packages'])})")
        else:
            lines.append(f"  {contender['name']} left out: {shown(contender['left_out'])}")
    return "\n".join(lines)


def _table(figures: Sequence[Mapping[str, Any]]) -> list[str]:
    home = {
        row["threads"]: row["seconds"]["median"] for row in figures if row["contender"] == "home" and row["seconds"]
    }
    rows = [_HEAD]
    failures = []
    for row in figures:
        if row["seconds"] is None:
            threads = "1 thread" if row["threads"] == 1 else f"{row['threads']} threads"
            failures.append(f"{row['contender']} with {threads}: {shown(row['failure'])}")
            continue
        times = row["seconds"]
        base = home.get(row["threads"])
        rows.append(
            (
                row["contender"],
                f"{row['threads']} {row['clock']}",
                duration(times["median"]),
                f"{duration(times['lower'])} to {duration(times['upper'])}",
                duration(times["minimum"]),
                f"{times['median'] / base:.2f} x" if base else "",
                _error(row["error"]),
                duration(row["first_seconds"]),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    return [
        *("  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows),
        *failures,
    ]


def _error(error: Mapping[str, Any] | None) -> str:
    return "unknown" if error is None else f"{float(error['relative']):.2g}"


def duration(seconds: float) -> str:
    """Writes a time with its unit."""
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


def draw(result: Mapping[str, Any], path: str) -> None:
    """Draws the whole model's median times with their quartiles.

    Raises:
        ConfigurationError: TP506, matplotlib is missing; TP505, the file cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigurationError(
            "a picture needs matplotlib, which is not installed; pip install matplotlib, or leave --png out",
            code="TP506",
        ) from None
    panels = _panels(result)
    bars = sum(len(rows) for rows in panels.values())
    figure = Figure(figsize=(8, 1 + 0.8 * len(panels) + 0.35 * bars), layout="constrained")
    heights = [1 + len(rows) for rows in panels.values()] or [1]  # nothing was measured: an empty frame
    drawn = figure.subplots(len(heights), squeeze=False, height_ratios=heights)
    for (axes,), (clock, rows) in zip(drawn, panels.items(), strict=bool(panels)):
        _bars(axes, rows)
        axes.set_title(clock, fontsize=9, loc="left")
    drawn[-1][0].set_xlabel("milliseconds, median and quartiles (measured)")
    figure.suptitle(shown(result["target"]), fontsize=10)
    try:
        figure.savefig(path, dpi=120, format="png")
    except OSError as problem:
        raise ConfigurationError(f"{path} cannot be written: {problem.strerror}", code="TP505") from problem


def _panels(result: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Groups what was measured by threads and clock: a scale of its own each, or the slowest hides all others."""
    panels: dict[str, list[Mapping[str, Any]]] = {}
    for row in result["model"]:
        if row["seconds"] is not None:
            clock = "one thread, CPU time" if row["clock"] == "cpu" else f"{row['threads']} threads, wall time"
            panels.setdefault(clock, []).append(row)
    return panels


def _bars(axes: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    """Draws medians as bars, quartiles as lines, and writes each median beside its bar."""
    medians, low, high = ([row["seconds"][name] * 1e3 for row in rows] for name in ("median", "lower", "upper"))
    spread = [
        [m - at for m, at in zip(medians, low, strict=True)],
        [at - m for m, at in zip(medians, high, strict=True)],
    ]
    colours = ["#1b7f5c" if row["contender"] == "home" else "#8a94a3" for row in rows]
    axes.barh(range(len(rows)), medians, xerr=spread, color=colours, error_kw={"elinewidth": 1})
    axes.set_yticks(range(len(rows)), [row["contender"] for row in rows])
    axes.invert_yaxis()
    axes.margins(x=0.18)
    axes.set_xlim(left=0)
    for place, (end, row) in enumerate(zip(high, rows, strict=True)):
        axes.annotate(
            duration(row["seconds"]["median"]),
            (end, place),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
