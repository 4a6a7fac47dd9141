from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from topos_core.errors import ConfigurationError
from topos_core.ops.verify import seal
from topos_core.run.interpreter import evaluate, interpret
from topos_core.tape.parse import parse_tape

LINEAR = """
%0 "x" = input() : f32[2,3] @1
%1 "w" = parameter() : f32[3,2]
%2 = matmul(%0, %1) accumulate=f32 : f32[2,2]
%3 = constant() value=f32:0.0 : f32[2,2]
%4 = maximum(%2, %3) : f32[2,2]
%5 = opaque(%4) foreign="aten::bernoulli" types=(f32[2,2], i64[]) note="" : f32[2,2] @1
%6 = permute(%0) order=(1, 0) : f32[3,2]
%7 = neg(%5) : f32[2,2]
%8 "rows" = input() : i64[2]
%9 = gather(%1, %8) axis=0 : f32[2,2] @1
return (%4, %6, %0, %9, %4)
range %8 0 9
default %1 f32[3,2]:(1.0, 2.0, 3.0, 4.0, -5.0, 6.0)
@0 =
@1 = user "main" "model.py":3:4-3:9
"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)
ROWS = np.array([2, 0])


def run(text=LINEAR, inputs=(X, ROWS), **options):
    return interpret(seal(parse_tape(text)), list(inputs), **options)


def test_results_come_in_the_tapes_order():
    hidden, turned, same, rows, again = run()
    np.testing.assert_array_equal(hidden, np.maximum(X @ np.array([[1, 2], [3, 4], [-5, 6]], np.float32), 0))
    np.testing.assert_array_equal(turned, X.T)
    np.testing.assert_array_equal(same, X)
    np.testing.assert_array_equal(rows, [[-5, 6], [1, 2]])
    np.testing.assert_array_equal(again, hidden)


def test_every_result_may_be_written_to_and_changes_nothing_else():
    x = X.copy()
    results = run(inputs=(x, ROWS))
    for result in results:
        before = [other.copy() for other in results if other is not result]
        result += 1
        assert all(np.array_equal(a, b) for a, b in zip(before, (o for o in results if o is not result), strict=True))
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize("key", [1, "w"])
def test_a_parameter_is_replaced_by_value_or_by_name(key):
    hidden = run(parameters={key: np.ones((3, 2), np.float32)})[0]
    np.testing.assert_array_equal(hidden, X @ np.ones((3, 2), np.float32))


def test_keep_gives_every_value_and_none_behind_a_foreign_op():
    values = run(keep=True)
    assert [None if value is None else value.shape for value in values] == [
        (2, 3), (3, 2), (2, 2), (2, 2), (2, 2), None, (3, 2), None, (2,), (2, 2),
    ]  # fmt: skip


def test_a_splat_takes_no_memory():
    splat = run(keep=True)[3]
    assert splat.strides == (0, 0)


def test_inner_values_can_be_given():
    tape = parse_tape(LINEAR)
    given = {4: np.full((2, 2), 3, np.float32), 5: np.full((2, 2), 2, np.float32)}
    assert evaluate(tape, given, [7])[7].tolist() == [[-2, -2], [-2, -2]]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((X,), "1 inputs given, the program takes 2: x=f32[2,3], rows=i64[2]"),
        (
            (X.astype(np.float64), ROWS),
            "input x is f64[2,3], the program was traced with f32[2,3]; convert it with astype",
        ),
        ((X[:1], ROWS), "input x is f32[1,3], the program was traced with f32[2,3]; reshape it or trace for its shape"),
        ((X.astype(complex), ROWS), "input x is complex128[2,3]"),
        ((X, ROWS + 7), "input rows holds 7 to 9, the program was traced with 0 to 8; stay inside"),
        ((X, ROWS - 1), "input rows holds -1 to 1"),
        ((np.ma.array(X, mask=X > 0), ROWS), "input x is a masked array, whose mask would be lost; fill it (`filled`)"),
    ],
)
def test_inputs_that_do_not_fit_are_told(inputs, message):
    with pytest.raises(ConfigurationError) as failure:
        run(inputs=inputs)
    assert message in failure.value.message
    assert failure.value.code == "TP502"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"v": X}, "no parameter is named 'v'; the program has w"),
        ({0: X}, "no parameter is named 0"),
        ({"w": X}, "parameter w is f32[2,3], the program was traced with f32[3,2]"),
        ({"w": np.ma.array(X.T)}, "parameter w is a masked array"),
    ],
)
def test_parameters_that_do_not_fit_are_told(parameters, message):
    with pytest.raises(ConfigurationError) as failure:
        run(parameters=parameters)
    assert message in failure.value.message


def test_a_parameter_without_values_is_told():
    with pytest.raises(ConfigurationError, match=r"parameter w f32\[3,2\] has no values"):
        run(LINEAR.replace("default", "# default"))


def test_a_needed_foreign_op_is_refused_by_name_and_place():
    with pytest.raises(ConfigurationError, match="aten::bernoulli is a foreign op") as failure:
        run(LINEAR.replace("return (%4,", "return (%7,"))
    assert failure.value.code == "TP507"
    assert str(failure.value.span) == "model.py:3:5"


def test_an_index_out_of_range_is_told_at_its_place():
    with pytest.raises(ConfigurationError, match="gather: index 3 is out of range for an axis of 3") as failure:
        run(inputs=(X, ROWS + 1))
    assert str(failure.value.span) == "model.py:3:5"


def test_values_are_dropped_after_their_last_reader():
    size = 1 << 18
    steps = "".join(f"%{k} = neg(%{k - 1}) : f64[{size}]\n" for k in range(1, 40))
    tape = parse_tape(f"%0 = input() : f64[{size}]\n{steps}return %39")
    x = np.zeros(size)
    tracemalloc.start()
    interpret(tape, [x])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * x.nbytes


def test_bits_do_not_depend_on_the_number_of_blas_threads():
    code = (
        "import numpy as np\n"
        "from topos_core.run.interpreter import interpret\n"
        "from topos_core.tape.parse import parse_tape\n"
        "tape = parse_tape('%0 = input() : f32[300,700]\\n%1 = input() : f32[700,500]\\n"
        "%2 = matmul(%0, %1) accumulate=f32 : f32[300,500]\\nreturn %2')\n"
        "rng = np.random.default_rng(0)\n"
        "x, w = (rng.standard_normal(s).astype('f4') for s in ((300, 700), (700, 500)))\n"
        "import hashlib; print(hashlib.sha256(interpret(tape, [x, w])[0].tobytes()).hexdigest())\n"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "OPENBLAS_NUM_THREADS": str(threads)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in (1, 2)
    }
    assert len(digests) == 1


@pytest.mark.parametrize(("accumulate", "expected"), [("f32", 0.0), ("f64", 1.0)])
def test_a_sum_runs_in_its_accumulation_dtype(accumulate, expected):
    text = f"%0 = input() : f32[3]\n%1 = sum(%0) axes=(0,) accumulate={accumulate} : f32[]\nreturn %1"
    x = np.array([1e8, 1, -1e8], np.float32)
    assert interpret(parse_tape(text), [x])[0] == expected


def test_no_warning_escapes():
    text = "%0 = input() : f32[2]\n%1 = log(%0) : f32[2]\n%2 = div(%1, %0) : f32[2]\nreturn %2"
    with np.errstate(all="raise"):
        assert np.isnan(interpret(parse_tape(text), [np.array([0, -1], np.float32)])[0][1])
