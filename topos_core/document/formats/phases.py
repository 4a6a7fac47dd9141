"""The three forms of what runs together, for a terminal: each form as text whose margin marks what the form before has not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from topos_core.document import phrases
from topos_core.document.formats.errors import place_of, shown

Group = Mapping[str, Any]
Paint = Callable[[str, str], str]

FORMS: Final = (("recorded", "recorded"), ("grouped", "grouped"), ("nest", "fused loop nest"))
_COLOURS: Final = {"+": "good", "-": "faint", "": ""}
_VALUE: Final = re.compile(r"%\d+")


def phase_lines(groups: Sequence[Group], paint: Paint) -> Iterator[str]:
    """Writes groups in their order; those that read alike but for their values' numbers once, with the places of the others."""
    alike: dict[tuple[str, ...], list[Group]] = {}
    for group in groups:
        alike.setdefault(_shape(group), []).append(group)
    for first, *others in alike.values():
        alone = len(first["values"]) == 1 and first["grouped"] is None
        title = first["recorded"][0]["text"] if alone else _title(first)
        yield f"  {place_of(first)}: {paint(shown(title), 'strong')}"
        if others:
            last = ", ".join(f"%{other['values'][-1]}" for other in others)
            yield f"      and {len(others)} more like it: {last}"
        if alone:
            yield f"      {shown(first['grouped_missing'])}"
            continue
        for name, title in FORMS:
            if first[name] is None:
                yield f"    {title}: {shown(_absent(first[f'{name}_missing']))}"
                continue
            yield f"    {title}"
            for line in first[name] if name == "recorded" else first[f"{name}_changes"]:
                sign = line.get("sign", "")
                text = f"      {sign or ' '} {shown(line['text'])}"
                yield paint(text, _COLOURS[sign]) if sign else text


def _absent(why: str) -> str:
    """Says why a form is missing, and where in the viewer its kernel stands."""
    by_hand = why == phrases.kernel_in_place_of_nest()
    return f"{why}; {phrases.where_kernels_stand()}" if by_hand else why


def _title(group: Group) -> str:
    count = len(group["values"])
    ops = f"{count} op{'' if count == 1 else 's'}"
    return f"{group['region'] or 'no region'}, {ops}"


def _shape(group: Group) -> tuple[str, ...]:
    """Gives a group's texts with its values numbered by their first use, so that equal blocks have equal ones."""
    names: dict[str, str] = {}

    def renumbered(found: re.Match[str]) -> str:
        return names.setdefault(found[0], f"%{len(names)}")

    missing = [str(group.get(f"{name}_missing")) for name, _ in FORMS]
    texts = [line["text"] for name, _ in FORMS for line in group[name] or ()]
    return (*missing, *(_VALUE.sub(renumbered, text) for text in texts))
