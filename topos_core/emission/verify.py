"""Verifies an emitted module: official parser and verifier, XLA and the reference interpreter, against the oracle."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topos_core.emission.backend import BACKENDS, BackendFailure, NotOffered, parse
from topos_core.ops.difference import Difference, difference
from topos_core.tape.tape import Tape

Run = Callable[[str, Sequence[np.ndarray]], list[np.ndarray]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What one backend gave: the difference of every result in the module's order, or why it did not run.

    `offered` is False where the backend lacks an op, is too slow or is not installed, which says nothing about the module.
    """

    backend: str
    differences: tuple[Difference, ...]
    reason: str | None
    offered: bool = True

    @property
    def ran(self) -> bool:
        """Tells whether the backend gave results of the right types."""
        return self.reason is None

    @property
    def largest(self) -> Difference:
        """Gives the largest absolute and relative differences over all results."""
        return Difference(
            max((row.absolute for row in self.differences), default=0.0),
            max((row.relative for row in self.differences), default=0.0),
        )


@dataclass(frozen=True, slots=True)
class Verification:
    """What verification found.

    `parsed` says that the text is StableHLO, `verified` that every op's types and attributes fit too; `error` is the
    message where one is False.
    """

    parsed: bool
    verified: bool
    error: str | None
    comparisons: tuple[Comparison, ...]

    def __getitem__(self, backend: str) -> Comparison:
        """Gives one backend's comparison."""
        return next(row for row in self.comparisons if row.backend == backend)

    @property
    def ran(self) -> bool:
        """Tells whether the text was verified, some backend ran it, and each did that has what it needs."""
        offered = [row for row in self.comparisons if row.offered]
        return self.verified and bool(offered) and all(row.ran for row in offered)


def verify(
    text: str,
    tape: Tape,
    inputs: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    *,
    parameters: Mapping[int, np.ndarray] | None = None,
    backends: Mapping[str, Run] = BACKENDS,
) -> Verification:
    """Parses and verifies a module, runs it on every backend, and compares with the expected results.

    Args:
        text: What `emission.module.emit` gave for the tape.
        tape: The tape; its parameters' snapshots become arguments.
        inputs: One array per input, in the tape's order.
        expected: The interpreter's arrays of the module's results (`emitted_results`).
        parameters: Arrays that replace snapshots, by value.
        backends: What runs it, by name.

    Raises:
        ConfigurationError: jax is missing (TP506).
    """
    try:
        parse(text)
    except BackendFailure as problem:
        return Verification(_tells_of_an_op(str(problem)), False, str(problem), ())
    given = {**tape.defaults, **(parameters or {})}
    arguments = [*map(np.asarray, inputs), *(given[value] for value in tape.parameters)]
    comparisons = (_compare(name, run, text, arguments, expected) for name, run in backends.items())
    return Verification(True, True, None, tuple(comparisons))


def _tells_of_an_op(message: str) -> bool:
    """jaxlib verifies while it parses: a complaint about an op, not about text, means that the syntax was taken."""
    return re.search(r"'[a-z_]+\.[\w.]+' op |inferred (shape|type)|match function result", message) is not None


def _compare(
    name: str, run: Run, text: str, arguments: Sequence[np.ndarray], expected: Sequence[np.ndarray]
) -> Comparison:
    try:
        got = run(text, arguments)
        if len(got) != len(expected):
            return Comparison(name, (), f"gave {len(got)} results, {len(expected)} were expected")
        return Comparison(name, tuple(difference(a, b) for a, b in zip(got, expected, strict=True)), None)
    except NotOffered as problem:
        return Comparison(name, (), str(problem), offered=False)
    except (BackendFailure, ValueError) as problem:
        return Comparison(name, (), str(problem))
