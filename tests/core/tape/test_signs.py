"""Ops that differ in their operands alone have one sign; what a tape was asked once it is not asked again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.core.matching.tapes import Builder
from topos_core.tape.leading import leads_on, leads_out
from topos_core.tape.signs import signs
from topos_core.tape.tape import Observation, Tape


def tape_of(build: Builder, *results: int) -> Tape:
    return build.tape(*results)


def test_operands_do_not_matter_and_everything_else_does() -> None:
    build = Builder()
    x, y = build.input("f32", (2, 3)), build.input("f32", (2, 3))
    first, other = build.op("permute", [x], order=(1, 0)), build.op("permute", [y], order=(1, 0))
    same, wide = build.op("permute", [x], order=(0, 1)), build.op("broadcast", [x], shape=(4, 2, 3))
    found = signs(tape_of(build, first, other, same, wide))
    assert found[first] == found[other]
    assert len({found[first], found[same], found[wide], found[x]}) == 4


def test_numbers_are_told_apart_by_their_bits() -> None:
    build = Builder()
    numbers = [build.constant(np.float32(v), "f32", ()) for v in (0.0, -0.0, 1.0, 1.0)]
    tables = [build.constant(np.array(v, np.float32), "f32", (2,)) for v in ([0, 1], [0, 1], [-0.0, 1])]
    x = build.input("f32", (2,))
    pads = [build.op("pad", [x], fill=np.float32(v), low=(1,), high=(0,), interior=(0,)) for v in (0.0, -0.0, 0.0)]
    found = signs(tape_of(build, *numbers, *tables, *pads))
    zero, minus, one, again = (found[k] for k in numbers)
    assert len({zero, minus, one}) == 3
    assert one == again
    assert found[tables[0]] == found[tables[1]] != found[tables[2]]
    assert found[pads[0]] == found[pads[2]] != found[pads[1]]


def test_what_leads_on_is_what_leads_out_and_what_observers_read() -> None:
    build = Builder()
    x = build.input("f32", (2, 3))
    out, seen, dead = (build.op("permute", [x], order=order) for order in ((1, 0), (0, 1), (1, 0)))
    tape = tape_of(build, out)
    watched = replace(tape, observations=(*tape.observations, Observation(seen, "observe", None, 0)))
    assert list(leads_out(watched)) == [1, 1, 0, 0]
    assert list(leads_on(watched)) == [1, 1, 1, 0]
    assert watched.once(leads_on) is watched.once(leads_on)
    assert replace(watched, observations=tape.observations).once(leads_on)[seen] == 0  # another tape, asked anew
    assert dead not in watched.results
