"""Who is measured: what runs in a process of its own, and the arrays that all contenders of a case are given."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from topos_core.tape.parse import parse_tape
from topos_core.tape.tape import Tape
from topos_core.tape.text import tape_text
from topos_core.tape.type import dtype_name, numpy_dtype


class Runner(NamedTuple):
    """What a contender is once it is loaded.

    Args:
        call: Runs the program once and waits for its results; this is what is timed.
        arrays: Turns what `call` gave into NumPy arrays, in the order of the program's results.
    """

    call: Callable[[], Any]
    arrays: Callable[[Any], Sequence[np.ndarray]]


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to run a program.

    Args:
        name: A short word that figures refer to.
        compares: What exactly it runs, for people: `the recorded ops in torch, one call an op`.
        maker: `module:function`; called as `maker(case folder, threads, **arguments)` in the contender's process, gives a
            `Runner`.
        arguments: Further arguments of the maker; plain data.
    """

    name: str
    compares: str
    maker: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


def save_case(
    folder: Path,
    tape: Tape,
    inputs: Sequence[np.ndarray],
    reference: Sequence[np.ndarray],
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Writes a case: the tape with its parameters, inputs, the results in float64, and settings of its contenders."""
    folder.mkdir(parents=True)
    (folder / "tape.txt").write_text(tape_text(tape, sources=False, defaults=False), encoding="utf-8")
    (folder / "settings.json").write_text(json.dumps(dict(settings or {})), encoding="utf-8")
    for value, array in tape.defaults.items():
        _save(folder / f"parameter-{value}", array)
    for at, array in enumerate(inputs):
        _save(folder / f"input-{at}", array)
    for at, array in enumerate(reference):
        _save(folder / f"reference-{at}", array)


def case_tape(folder: Path) -> Tape:
    """Reads a case's tape, with the values of its parameters."""
    from dataclasses import replace

    tape = parse_tape((folder / "tape.txt").read_text(encoding="utf-8"))
    found = {value: folder / f"parameter-{value}.npy" for value in tape.parameters}
    return replace(tape, defaults={value: _load(path) for value, path in found.items() if path.exists()})


def case_inputs(folder: Path) -> list[np.ndarray]:
    """Reads a case's inputs, in order."""
    return _numbered(folder, "input")


def case_reference(folder: Path) -> list[np.ndarray]:
    """Reads the results in float64, in order; empty where there are none."""
    return _numbered(folder, "reference")


def case_settings(folder: Path) -> dict[str, Any]:
    """Reads the settings of a case's contenders."""
    settings: dict[str, Any] = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    return settings


def _numbered(folder: Path, word: str) -> list[np.ndarray]:
    arrays: list[np.ndarray] = []
    while (path := folder / f"{word}-{len(arrays)}.npy").exists():
        arrays.append(_load(path))
    return arrays


def _save(path: Path, array: np.ndarray) -> None:
    """Keeps the dtype's name beside the elements: npy files know no bf16."""
    name = dtype_name(array.dtype)
    plain = array.view(np.uint16) if name == "bf16" else array
    np.save(path.with_suffix(".npy"), np.ascontiguousarray(plain).reshape(array.shape), allow_pickle=False)
    path.with_suffix(".dtype").write_text(str(name), encoding="utf-8")


def _load(path: Path) -> np.ndarray:
    array: np.ndarray = np.load(path, allow_pickle=False)
    return array.view(numpy_dtype(path.with_suffix(".dtype").read_text(encoding="utf-8")))
