"""Short texts that editors put beside code: hints, lenses, and why there is no plan. Lower case, no full stop, verdict first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from topos_core.document import phrases

_COUNTED = (("taken", "taken"), ("declined", "declined"), ("blocked", "blocked"), ("near_miss", "near miss"))


def hint(region: Mapping[str, Any], alike: int, others: int, *, stale: bool) -> str:
    """Marks a line: the verdict, what it is about, the reason's word, how often, and how many more regions end there."""
    verdict = region["verdict"].replace("_", " ")
    text = (
        f"{verdict}: {region['pattern']}"
        if verdict != "declined"
        else f"declined ({region['word']}): {region['pattern']}"
    )
    if alike > 1:
        text += f" {phrases.repeats(alike)}"
    if others:
        text += f", {others} more"
    return f"{text} (stale)" if stale else text


def hint_switch(verdict: str) -> str:
    """Says how a hint's kind is turned off."""
    return f"the action or the setting topos.inlayHints hides the hints of what is {_kind(verdict)}"


def counts(found: Mapping[str, int]) -> str:
    """Counts an entry's verdicts: `4 taken, 1 declined, 1 blocked`."""
    parts = [f"{found[key]} {word}" for key, word in _COUNTED[:3] if found[key]]
    if found["near_miss"]:
        near = found["near_miss"]
        parts.append(f"{near} near miss{'' if near == 1 else 'es'}")
    return ", ".join(parts) or "nothing recognised"


def op(name: str, type_: str, attributes: str) -> str:
    """Tells what was recorded at an expression."""
    return f"`{name}{' ' + attributes if attributes else ''}` gives `{type_}`"


def op_outside() -> str:
    """Says that an op belongs to no region."""
    return "recorded: no pattern matches here, so it runs as it is written"


def more_ops(count: int) -> str:
    """Counts further ops of one expression."""
    return f"and {count} more op{'' if count == 1 else 's'} at this expression"


def observed(value: str | None, reader: str, blocks: Sequence[str], kept: str | None, idle: str | None = None) -> str:
    """Tells what reading a value does, `value` as it is called or written; `blocks` are the titles of regions, `idle` says that it
    blocks none."""
    value = f"`{value}`" if value else "a value"
    if blocks:
        return f"observed: {value} is read by {reader}, which blocks {phrases.listed(blocks)}"
    if kept is not None:
        return f"kept: {value} is {kept}, so reading it by {reader} costs nothing"
    return f"observed: {value} is read by {reader}, which {idle or phrases.blocks_nothing(())}"


def request(consumer: str, fidelity: str, machine: str) -> str:
    """Says under which request the verdicts hold."""
    return f"verdicts of {consumer}, {fidelity}, machine {machine}"


def interpreter(path: str, origin: str, skipped: Sequence[str] = ()) -> str:
    """Says which Python ran the code, why that one, and why not those that come before it."""
    return f"traced with {path} ({'; '.join((origin, *skipped))})"


def stale(since: str, reason: str) -> str:
    """Says that a plan is an older one, from when, and why there is no newer."""
    return f"stale: this is the plan of {since}; {reason}"


def no_plan(reason: str) -> str:
    """Says why there is no plan at all."""
    return f"no plan: {reason}"


def untrusted() -> str:
    """Says that nothing was run because nobody trusts the folder."""
    return "not traced: this folder is not trusted, so its code is not run"


def trust(folder: str) -> str:
    """Titles the action that trusts a folder."""
    return f"trust {folder} and trace"


def trust_in_editor() -> str:
    """Titles the action that opens the editor's own trust dialog."""
    return "not traced: workspace not trusted, manage trust"


def waiting() -> str:
    """Says that a plan is on its way."""
    return "tracing ..."


def not_asked() -> str:
    """Says that tracing waits for somebody to ask."""
    return "not traced yet: trace now"


def changed_since() -> str:
    """Says that the text is newer than the plan."""
    return "the text changed since"


def cancelled() -> str:
    """Says that somebody stopped the trace."""
    return "the trace was cancelled"


def open_plan(found: str) -> str:
    """Titles the lens of a traced entry."""
    return f"{found}: open plan"


def failed(code: str) -> str:
    """Titles the lens of an entry that could not be traced."""
    return f"no plan ({code}): trace again"


def stale_lens(found: str, since: str) -> str:
    """Titles the lens of an entry whose newest trace failed."""
    return f"{found}, stale since {since}: trace again"


def ignore(code: str) -> str:
    """Titles the edit that leaves a finding out by a comment."""
    return f"leave {code} out here with a comment"


def open_region(headline: str) -> str:
    """Titles the action that opens the plan at a region."""
    return f"open the plan at {headline}"


def show_stablehlo(name: str, *, shown: bool) -> str:
    """Titles the action that shows an entry's emitted text; in an editor that opens no documents it names the file in the log."""
    return f"show the StableHLO of {name}" if shown else f"write the StableHLO of {name} into a file"


def copy_stablehlo(name: str) -> str:
    """Titles the action that copies an entry's emitted text."""
    return f"copy the StableHLO of {name}"


def trace_again() -> str:
    """Titles the action that traces once more."""
    return "trace again"


def toggle_hints(verdict: str, shown: bool) -> str:
    """Titles the switch of one kind of hint by what it will do."""
    return f"{'hide' if shown else 'show'} the hints of what is {_kind(verdict)}"


def _kind(verdict: str) -> str:
    return "nearly missed" if verdict == "near_miss" else verdict
