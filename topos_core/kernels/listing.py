"""Lists what runs a taken match: its kernels, the text that makes them, what was generated, and how they are started.

The match is made ready and, where its arrays are small enough, run once on sample values, so that what is listed is what a
run on this machine does and not what somebody believes that it does.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from topos_core.kernels.convolution.choice import known_beforehand
from topos_core.kernels.home.manifest import prepare
from topos_core.kernels.host import host
from topos_core.kernels.library import SYMBOL
from topos_core.kernels.vocabulary import blocks
from topos_core.kernels.watching import Start, watching
from topos_core.matching.match import Match
from topos_core.ops.catalog import definition
from topos_core.tape.tape import Tape
from topos_core.tape.type import TensorType, numpy_dtype

LARGEST_SAMPLE: Final = 256 << 20
"""Bytes of arrays up to which a match is run once."""
_FOLDER: Final = Path(__file__).parent
_READS: Final = re.compile(r"^(?:get = reader\(|BLOCK: Final = )(\w+)\)?$", re.MULTILINE)
_ADDRESS: Final = 1 << 32  # a larger word is a place in memory, which says nothing to a reader


@dataclass(frozen=True, slots=True)
class Started:
    """One start: what the words of its block say besides places in memory."""

    threads: int
    words: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class KernelText:
    """One kernel of a match.

    Args:
        name: Of its file in `bodies/`.
        variant: What it was made for: a dtype, an activation, a tile.
        path: The file, from the folder that holds the package.
        text: The file's text.
        compiler: `numba`, which compiles the file's function, or `llvm`, which compiles what the file writes.
        generated: What the file wrote, as LLVM IR; None for numba, whose IR exists only while it compiles.
        starts: How one run starts it; none for a kernel that another one calls by address, or that was not run.
    """

    name: str
    variant: tuple[str, ...]
    path: str
    text: str
    compiler: str
    generated: str | None
    starts: tuple[Started, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything that runs one match.

    Args:
        path: The file that prepares the match.
        kernels: In the order in which they are first started; those called by address come last.
        ran: Whether a run on sample values was watched.
        sample_bytes: What its arrays hold.
        target: The processor that the kernels were made for, as LLVM names it.
    """

    path: str
    kernels: tuple[KernelText, ...]
    ran: bool
    sample_bytes: int
    target: str


def listing(tape: Tape, match: Match, threads: int, off: frozenset[str] = frozenset()) -> Listing:
    """Lists what runs a match on this machine; compiles what is not in the store yet.

    Values that a plan binds before a run stand as samples here; `off` is what the request switched off.
    """
    constants = {
        value: definition("constant").evaluate([], tape.ops[value].attributes, tape.ops[value].type)
        for value in match.bindings.values()
        if tape.ops[value].name == "constant"
    }
    shapes = {name: tape.ops[value].type for name, value in match.bindings.items()}
    for name, value in match.bindings.items():
        if value not in constants and known_beforehand(tape, value) and shapes[name].bytes <= LARGEST_SAMPLE:
            constants[value] = _sample(shapes[name])
    results = {"result": match.root, **{name: values[0] for name, values in match.named.items()}}
    size = sum(kind.bytes for kind in shapes.values()) + sum(tape.ops[value].type.bytes for value in results.values())
    with watching() as seen:
        prepared = prepare(tape, match, constants, off)
        ran = size <= LARGEST_SAMPLE
        if ran:
            bindings = {name: constants.get(match.bindings[name], _sample(kind)) for name, kind in shapes.items()}
            with np.errstate(all="ignore"):
                prepared.run(bindings, {name: _empty(tape.ops[value].type) for name, value in results.items()}, threads)
    order = dict.fromkeys([*((s.name, s.variant) for s in seen.started), *seen.asked])
    for waking in ("lead", "follow"):
        order.pop(("crew", (waking,)), None)  # what wakes threads is no part of a match
    kernels = tuple(_text(name, variant, seen.started) for name, variant in order)
    return Listing(f"topos_core/kernels/home/{match.pattern}.py", kernels, ran, size, host().cpu)


def _text(name: str, variant: tuple[str, ...], started: Sequence[Start]) -> KernelText:
    text = (_FOLDER / "bodies" / f"{name}.py").read_text()
    body = importlib.import_module(f"topos_core.kernels.bodies.{name}")
    written = str(body.module(host(), SYMBOL, *variant)) if hasattr(body, "module") else None
    found = _READS.search(text)
    block: tuple[str, ...] = getattr(blocks, found[1]) if found is not None else ()
    starts = tuple(
        Started(
            start.threads, {word: value for word, value in zip(block, start.words, strict=True) if value < _ADDRESS}
        )
        for start in started
        if (start.name, start.variant) == (name, variant)
    )
    compiler = "numba" if written is None else "llvm"
    return KernelText(name, variant, f"topos_core/kernels/bodies/{name}.py", text, compiler, written, starts)


def _sample(kind: TensorType) -> np.ndarray:
    """Gives ones, or zeros of an index: which values they are decides about no kernel."""
    dtype = numpy_dtype(kind.dtype)
    return np.zeros(kind.shape, dtype) if dtype.kind in "iu" else np.ones(kind.shape, dtype)


def _empty(kind: TensorType) -> np.ndarray:
    return np.empty(kind.shape, numpy_dtype(kind.dtype))
