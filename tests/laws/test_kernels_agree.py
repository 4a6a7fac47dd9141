"""Whatever home offers for a recognised match gives what the recorded ops give, in any spelling and layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from tests.core.matching import spellings
from tests.core.matching.check import compare, inputs_of
from tests.core.matching.random_windows import random_case, random_layout
from topos_core.kernels.home.manifest import Home, prepare
from topos_core.kernels.home.manifest import patterns as offered
from topos_core.kernels.kernel import Offer
from topos_core.matching.catalog import patterns
from topos_core.matching.search import search
from topos_core.plan.request import Request
from topos_core.recording.trace import trace
from topos_core.run.interpreter import interpret

Program = tuple[Any, Any]  # function, specs


def run(programs: Iterable[Program]) -> Counter:
    """Runs every offered match of every program by itself; counts them by pattern."""
    tally: Counter = Counter()
    chosen = [pattern for name, pattern in patterns().items() if name in offered()]
    for function, specs in programs:
        tape = trace(function, **specs)
        values = interpret(tape, inputs_of(tape, 0), keep=True)
        for match in search(tape, chosen).matches:
            if not isinstance(Home().offer(tape, match, Request()), Offer):
                continue
            names = {"result": match.root, **{name: producers[0] for name, producers in match.named.items()}}
            out = {name: np.full_like(values[value], 77) for name, value in names.items()}
            prepare(tape, match, {}).run({n: values[v] for n, v in match.bindings.items()}, out, 1)
            for name, value in names.items():
                compare(out[name], values[value], f"{match.id}: {name}")
            tally[match.pattern] += 1
    return tally


def examples() -> list[Any]:
    return [
        pytest.param(example, id=f"{name}: {example.name}")
        for name, pattern in patterns().items()
        if name in offered()
        for example in pattern.examples
    ]


@pytest.mark.parametrize("example", examples())
def test_kernels_agree_on_examples(example):
    run([(example.function, example.specs)])


def test_kernels_agree_on_every_spelling():
    programs = [*((function, spellings.SPECS) for function in spellings.SPELLINGS), *spellings.OTHERS]
    assert run(programs)["convolution"] >= len(programs)


@pytest.mark.parametrize("make", [random_case, random_layout], ids=["spellings", "layouts"])
def test_kernels_agree_on_random_windows(make):
    cases = [make(seed) for seed in range(500, 600)]
    assert sum(run((case.function, case.specs) for case in cases).values()) >= 70
