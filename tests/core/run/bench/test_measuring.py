"""Contenders in processes of their own: what is measured, what fails and how it is told. No time is asserted."""

import os
from pathlib import Path

import numpy as np
import pytest

from topos_core.run.bench.contender import Contender, case_inputs, case_tape, save_case
from topos_core.run.bench.measuring import environment, measure, processes, spread
from topos_core.tape.parse import parse_tape

TAPE = """
    %0 = input() : f32[3]
    %1 = parameter() : bf16[2]
    %2 = constant() value=f32:2.0 : f32[3]
    %3 = mul(%0, %2) : f32[3]
    return (%3,)
    default %1 bf16[2]:(1.5, -2.0)
"""
X = np.array([1.0, -2.0, 4.0], np.float32)


@pytest.fixture
def case(tmp_path):
    folder = tmp_path / "case"
    save_case(folder, parse_tape(TAPE), [X], [X.astype(np.float64) * 2])
    return folder


@pytest.fixture
def runners(monkeypatch):
    """Lets the contenders' processes import the tests' own makers."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    return lambda name, **arguments: Contender(name, "a test", f"runners:{name}", arguments)


def measured(case, contenders, *, threads=1, patience=60.0, seconds=0.0):
    steps = []
    with processes(contenders, threads, patience) as crew:
        figures = measure(
            crew, case, threads, rounds=2, seconds=seconds, progress=lambda *step: steps.append(step), title="case"
        )
    return figures, steps


def test_a_case_comes_back_as_it_was_saved(case):
    assert case_inputs(case)[0].tobytes() == X.tobytes()
    (value,) = case_tape(case).defaults
    assert case_tape(case).defaults[value].tolist() == [1.5, -2.0]


def test_every_contender_gets_its_turns_and_its_error_is_against_float64(case, runners):
    figures, steps = measured(case, [runners("doubling"), runners("doubling", off=0.5), runners("printing")])
    assert [figure.runs for figure in figures] == [6, 6, 6]
    assert [figure.error["absolute"] for figure in figures] == [0.0, 0.5, 0.0]
    assert figures[1].error["relative"] == 0.5 / 8
    assert {figure.clock for figure in figures} == {"cpu"}
    assert len(steps) == 3 + 2 * 3


def test_a_contender_that_fails_is_told_and_the_others_are_measured(case, runners):
    contenders = [runners("refusing"), runners("ending"), runners("doubling"), runners("sleeping")]
    figures, _ = measured(case, contenders, patience=3.0)
    assert [figure.failure for figure in figures] == [
        "ValueError: no such op here", "ended with status 3", None, "took longer than 3 s",
    ]  # fmt: skip
    assert [figure.seconds is None for figure in figures] == [True, True, False, True]


def test_processes_are_pinned_to_their_threads_and_blas_chooses_for_itself(case, runners, monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    reference = case / "reference-0.npy"
    for threads in (1, 2):
        seen = min(threads, len(os.sched_getaffinity(0)))
        np.save(reference, np.array([threads, seen, threads, 0.0]))
        (figure,), _ = measured(case, [runners("telling")], threads=threads)
        assert figure.error["absolute"] == 0.0
        assert figure.clock == ("cpu" if threads == 1 else "wall")


def test_only_the_settings_that_slow_blas_are_taken_away():
    given = {"OPENBLAS_L2_SIZE": "512", "HOME": "/home/me", "OMP_NUM_THREADS": "8"}
    assert environment(given, 2) == {
        "HOME": "/home/me", "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2",
    }  # fmt: skip


def test_times_are_summed_up_by_quartiles():
    found = spread([4.0, 1.0, 2.0, 3.0, 5.0])
    assert (found.minimum, found.lower, found.median, found.upper) == (1.0, 2.0, 3.0, 4.0)
    assert spread([7.0]).upper == 7.0
