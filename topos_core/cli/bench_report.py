"""Renders `topos.bench/1` for people: a table for the model and one for each region measured alone, and a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from topos_core.cli.terminal import Terminal
from topos_core.document.formats.errors import place_of, shown
from topos_core.errors import ConfigurationError

_HEAD = ("", "threads", "median", "quartiles", "least", "against home", "error vs f64", "first result")


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
            failures.append(f"{row['contender']} with {row['threads']} threads: {shown(row['failure'])}")
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
    return "unknown" if error is None else f"{float(error['absolute']):.2g}"


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
    rows = [row for row in result["model"] if row["seconds"] is not None]
    figure = Figure(figsize=(8, 1 + 0.35 * len(rows)), layout="constrained")
    axes = figure.subplots()
    medians = [row["seconds"]["median"] * 1e3 for row in rows]
    low = [(row["seconds"]["median"] - row["seconds"]["lower"]) * 1e3 for row in rows]
    high = [(row["seconds"]["upper"] - row["seconds"]["median"]) * 1e3 for row in rows]
    colours = ["#1b7f5c" if row["contender"] == "home" else "#8a94a3" for row in rows]
    places = range(len(rows))
    axes.barh(places, medians, xerr=[low, high], color=colours, error_kw={"elinewidth": 1})
    axes.set_yticks(places, list(_labels(rows)))
    axes.invert_yaxis()
    axes.set_xlabel("milliseconds, median and quartiles (measured)")
    axes.set_title(shown(result["target"]), fontsize=10)
    try:
        figure.savefig(path, dpi=120, format="png")
    except OSError as problem:
        raise ConfigurationError(f"{path} cannot be written: {problem.strerror}", code="TP505") from problem


def _labels(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        yield f"{row['contender']}, {row['threads']} {'thread, CPU' if row['clock'] == 'cpu' else 'threads, wall'}"
