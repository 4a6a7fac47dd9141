"""Whatever recognition finds and the consumer `stablehlo` takes computes what was recorded, run by XLA and the reference
interpreter. Programs share modules, so that few are compiled."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tests.core.matching import spellings
from tests.core.matching.check import inputs_of
from tests.core.matching.random_windows import random_case
from topos_core.api import plan
from topos_core.emission.backend import run_reference, run_xla
from topos_core.emission.module import emit_matches
from topos_core.emission.raises.catalog import raises
from topos_core.matching.catalog import patterns
from topos_core.matching.match import Match
from topos_core.matching.search import search
from topos_core.recording.trace import trace
from topos_core.run.interpreter import interpret
from topos_core.tape.tape import Tape

Program = tuple[Callable[..., Any], Mapping[str, Any]]


def side_by_side(programs: Sequence[Program]) -> Tape:
    """Traces several programs as one, each with arguments of its own."""
    specs = {f"{name}_{k}": kind for k, (_, kinds) in enumerate(programs) for name, kind in kinds.items()}

    def run_all(**values: Any) -> list[Any]:
        return [
            function(**{name: values[f"{name}_{k}"] for name in kinds}) for k, (function, kinds) in enumerate(programs)
        ]

    return trace(run_all, **specs)


def check(tape: Tape, text: str, backends: Sequence[Any], seed: int = 0) -> None:
    inputs = inputs_of(tape, seed)
    expected = interpret(tape, inputs)
    arguments = [*inputs, *(tape.defaults[value] for value in tape.parameters)]
    for run in backends:
        for number, (got, want) in enumerate(zip(run(text, arguments), expected, strict=True)):
            scale = max(1.0, float(np.abs(want[np.isfinite(want)]).max(initial=0)))
            np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * scale, err_msg=f"{run.__name__}: result {number}")


def emitted(tape: Tape) -> str:
    return plan(tape, consumer="stablehlo", cost="always", machine="reference").emit_stablehlo()


@pytest.mark.parametrize(("first_seed", "backends"), [(0, [run_xla]), (100, [run_xla]), (200, [run_reference])])
def test_random_convolutions_and_pools(first_seed, backends):
    cases = [random_case(seed) for seed in range(first_seed, first_seed + 100)]
    tape = side_by_side([(case.function, case.specs) for case in cases])
    text = emitted(tape)
    sliding = sum(case.slides for case in cases)
    named = len(re.findall(r'stablehlo\.convolution\(|"stablehlo\.reduce_window"', text))
    assert named >= 0.95 * sliding  # pads that are never read, strides over one position: nothing slides after all
    check(tape, text, backends)


def test_one_convolution_in_every_spelling_is_one_op_each():
    specs = spellings.SPECS
    tape = side_by_side([(function, specs) for function in every_spelling()])
    text = emitted(tape)
    windows = re.findall(r"stablehlo\.convolution\(.*?window = \{(.*?)\} \{", text)
    assert len(windows) == len(every_spelling())
    assert len(set(windows)) == 1
    assert not re.search(r"stablehlo\.(gather|slice|dot_general|concatenate|pad) ", text)
    check(tape, text, [run_xla, run_reference])


def every_spelling() -> list[Callable[..., Any]]:
    names = (
        "windows_einsum", "einsum_kernel_first", "windows_tensordot", "slices_stacked", "shifted_sum",
        "shifted_sum_commuted", "gathered", "strided",
    )  # fmt: skip
    return [getattr(spellings, name) for name in names]


@pytest.mark.parametrize("identifier", sorted(raises()))
def test_every_raise_computes_its_patterns_examples(identifier):
    pattern = patterns()[identifier]
    tape = side_by_side([(example.function, example.specs) for example in pattern.examples])
    matches = outermost([m for m in search(tape, [pattern]).matches if m.pattern == identifier])
    assert len(matches) == len(pattern.examples)
    backends = [run_xla] if identifier.startswith("batch_norm") else [run_xla, run_reference]
    check(tape, emit_matches(tape, matches), backends)


def outermost(matches: list[Match]) -> list[Match]:
    inside = frozenset().union(*(match.interior for match in matches))
    return [match for match in matches if match.root not in inside]


def test_batch_norm_named_results_come_back_whoever_asks():
    pattern = patterns()["batch_norm_training"]
    tape = side_by_side([(example.function, example.specs) for example in pattern.examples])
    matches = outermost(search(tape, [pattern]).matches)
    named = [value for match in matches for values in match.named.values() for value in values]
    assert named
    text = emit_matches(tape, matches, named)
    inputs = inputs_of(tape, 0)
    values = interpret(tape, inputs, keep=True)
    results = run_xla(text, inputs)[len(tape.results) :]
    extra = [value for value in dict.fromkeys(named) if value not in tape.results]
    for value, got in zip(extra, results, strict=True):
        np.testing.assert_allclose(got, values[value], rtol=1e-5, atol=1e-6)
