"""Generated loops: every op at every dtype, tails, strides, threads, what is rounded and what jumps."""

from __future__ import annotations

import numpy as np
import pytest

import topos_core as tp
from tests.laws.cases import Case, numbers, pairs, specials, tape_of
from topos_core.kernels.expressions.loops import lay_out
from topos_core.kernels.expressions.programs import missing
from topos_core.kernels.expressions.runner import make_runner
from topos_core.kernels.home.manifest import Home, prepare
from topos_core.kernels.host import host
from topos_core.kernels.kernel import Decline, Offer
from topos_core.matching.catalog import patterns
from topos_core.matching.expression import TRANSCENDENTAL
from topos_core.matching.gathering import Gathering
from topos_core.matching.search import search
from topos_core.ops.catalog import definitions
from topos_core.ops.definition import TypeMismatch
from topos_core.plan.request import Request
from topos_core.recording.trace import trace
from topos_core.tape.type import DTYPE_NAMES, numpy_dtype

ELEMENTWISE = [row for row in definitions().values() if row.kind == "elementwise"]
ULPS = {"exp": 2, "tanh": 6, "erf": 4, "expm1": 4, "log": 4, "log1p": 4, "sin": 4, "cos": 4}


def one_op(case):
    """Gives the match of one op by itself, or None where no kernel computes it."""
    tape = tape_of([case])
    root = tape.results[0]
    match = Gathering(tape, tape.type_of(root).shape, (root,)).match("elementwise_chain", root)
    return None if missing(match.facts) is not None else (tape, match)


def run(tape, match, arrays, threads=1):
    kind = tape.type_of(match.root)
    out = np.full(kind.shape, 77).astype(numpy_dtype(kind.dtype))
    make_runner(tape, match).run(arrays, {"result": out}, threads)
    return out


def applications(row, dtype):
    """Gives one application of an op at a dtype: special values, all pairs of them."""
    values = specials(dtype)
    a, b = pairs(values)
    condition = numbers("bool", a.shape, 1)
    operands = {1: (values,), 2: (a, b), 3: (condition, a, b)}[row.arity]
    kinds = [{"kind": kind} for kind in ("lt", "le", "gt", "ge", "eq", "ne")] if row.name == "compare" else [{}]
    if row.name == "cast":
        kinds = [{"dtype": other} for other in DTYPE_NAMES if other != dtype]
    return [Case(row.name, operands, attributes) for attributes in kinds]


def same_bits(got, want):
    if got.dtype.kind in "iub":
        return np.array_equal(got, want)
    signs = np.signbit(got.astype(np.float64)) == np.signbit(want.astype(np.float64))
    return np.array_equal(got.astype(np.float64), want.astype(np.float64), equal_nan=True) and bool(
        (signs | np.isnan(got.astype(np.float64))).all()
    )


@pytest.mark.parametrize("dtype", DTYPE_NAMES)
@pytest.mark.parametrize("row", ELEMENTWISE, ids=lambda row: row.name)
def test_every_op_gives_what_the_interpreter_gives(row, dtype):
    if row.name in TRANSCENDENTAL:
        return  # below
    for case in applications(row, dtype):
        try:
            kind = case.type
        except TypeMismatch:
            return
        found = one_op(case)
        if found is None:
            assert row.name == "cast", case
            continue
        tape, match = found
        with np.errstate(all="ignore"):
            want = row.evaluate(case.operands, case.attributes, kind)
        got = run(tape, match, dict(zip(match.bindings, case.operands, strict=True)))
        assert same_bits(got, want), str(case)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", ULPS)
def test_functions_are_close_and_special_values_stand_where_they_should(name, dtype):
    x = np.concatenate([specials(dtype), numbers(dtype, (500,), 1, low=-20.0, high=20.0)])
    tape, match = one_op(Case(name, (x,), {}))
    got = run(tape, match, {"x0": x})
    with np.errstate(all="ignore"):
        want = definitions()[name].evaluate([x], {}, tape.type_of(match.root))
    finite = np.isfinite(want)
    assert np.array_equal(got[~finite], want[~finite], equal_nan=True)
    np.testing.assert_array_max_ulp(got[finite], want[finite], ULPS[name], numpy_dtype(dtype))


def chain(x, y, bias):
    return np.where(x > y, x * y + bias, np.sqrt(np.abs(x)) - bias) / (y * y + 1)


def match_of(function, specs, pattern="elementwise_chain"):
    tape = trace(function, **specs)
    found = [match for match in search(tape, patterns().values()).matches if match.pattern == pattern]
    return tape, max(found, key=lambda match: len(match.computing))


def arrays_of(tape, match, seed=0):
    kinds = {name: tape.type_of(value) for name, value in match.bindings.items()}
    return {name: numbers(kind.dtype, kind.shape, seed + k) for k, (name, kind) in enumerate(kinds.items())}


def in_exact(tape, match, arrays):
    from topos_core.matching.expression import evaluated

    with np.errstate(all="ignore"):
        return {name: np.asarray(array) for name, array in evaluated(match.facts, arrays).items()}


@pytest.mark.parametrize("width", [-1, 0, 1])
@pytest.mark.parametrize("registers", [1, 2, 5])
def test_tails_of_lanes(registers, width):
    columns = registers * host().lanes("f32") + width
    tape, match = match_of(chain, {"x": f"f32[3,{columns}]", "y": f"f32[3,{columns}]", "bias": f"f32[{columns}]"})
    arrays = arrays_of(tape, match)
    got = run(tape, match, arrays)
    assert same_bits(got, in_exact(tape, match, arrays)["root"].reshape(got.shape))


@pytest.mark.parametrize("bias", ["f32[7]", "f32[5,1]", "f32[3,1,1]", "f32[]", "f32[5,7]", "f32[3,1,7]"])
def test_operands_repeat_along_any_axes(bias):
    tape, match = match_of(chain, {"x": "f32[3,5,7]", "y": "f32[3,5,7]", "bias": bias})
    arrays = arrays_of(tape, match)
    got = run(tape, match, arrays)
    assert same_bits(got, in_exact(tape, match, arrays)["root"].reshape(got.shape))


def test_any_strides_of_operands_and_results_are_taken():
    tape, match = match_of(chain, {"x": "f32[6,8,10]", "y": "f32[6,8,10]", "bias": "f32[10]"})
    arrays = arrays_of(tape, match)
    want = in_exact(tape, match, arrays)["root"]
    runner = make_runner(tape, match)
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        moved = dict(arrays)
        moved["x0"] = np.ascontiguousarray(arrays["x0"].transpose(order)).transpose(np.argsort(order))
        out = np.empty(want.shape, np.float32)[:, ::-1]
        runner.run(moved, {"result": out}, 1)
        assert same_bits(out, want)
    reversed_view = arrays["x0"][:, :, ::-1]
    out = np.empty(want.shape, np.float32)
    runner.run({**arrays, "x0": reversed_view}, {"result": out}, 1)
    assert same_bits(out, in_exact(tape, match, {**arrays, "x0": reversed_view})["root"])


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_the_bits_depend_on_no_number_of_threads(threads):
    tape, match = match_of(chain, {"x": "f32[70,1000]", "y": "f32[70,1000]", "bias": "f32[1000]"})
    arrays = arrays_of(tape, match)
    assert same_bits(run(tape, match, arrays, threads), in_exact(tape, match, arrays)["root"])


@pytest.mark.parametrize("shape", ["0", "3,0", "1", "1,1", ""])
def test_shapes_with_nothing_or_with_one_element(shape):
    tape, match = match_of(lambda x: np.sqrt(np.abs(x)) * x + 1, {"x": f"f32[{shape}]"})
    arrays = arrays_of(tape, match)
    got = run(tape, match, arrays)
    assert same_bits(got, in_exact(tape, match, arrays)["root"].reshape(got.shape))


def test_dtypes_mix_in_one_loop():
    def mixed(x, k):
        return np.where(k % 3 == 0, x.astype(np.float64) * 0.1, np.floor(x) + k).astype(np.float32)

    tape, match = match_of(mixed, {"x": "f32[5,37]", "k": "i64[5,37]"})
    arrays = arrays_of(tape, match)
    got = run(tape, match, arrays)
    assert same_bits(got, in_exact(tape, match, arrays)["root"])


def test_a_cast_rounds_where_it_stands():
    def narrowed(x):
        return (x * 3).astype(np.float16).astype(np.float32) + x

    tape, match = match_of(narrowed, {"x": "f32[100]"})
    arrays = arrays_of(tape, match)
    assert same_bits(run(tape, match, arrays), in_exact(tape, match, arrays)["root"])


def test_numbers_are_no_part_of_what_is_compiled():
    from topos_core.kernels.expressions.programs import program_of

    texts = set()
    for scale in (2.0, 3.0, -0.5):
        _, match = match_of(lambda x, scale=scale: x * scale + 1, {"x": "f32[100]"})
        texts.add(program_of(match.facts, "map", [True], partial=False).text())
    assert len(texts) == 1


def test_axes_merge_where_every_array_runs_through_them_in_one_go():
    loops = lay_out((3, 5, 7), (), [(140, 28, 4), (140, 28, 4)])
    assert (loops.rows.extents, loops.inner) == ((), 105)
    loops = lay_out((3, 5, 7), (), [(140, 28, 4), (0, 0, 4)])
    assert (loops.rows.extents, loops.inner, loops.along) == ((15,), 7, (True, True))
    loops = lay_out((3, 5, 7), (), [(140, 28, 4), (4, 0, 0)])
    assert (loops.rows.extents, loops.inner, loops.along) == ((3,), 35, (True, False))


def offered(function, specs, fidelity="fast"):
    tape, match = match_of(function, specs)
    return Home().offer(tape, match, Request(fidelity=fidelity))


def test_a_chain_of_correctly_rounded_ops_is_exact():
    answer = offered(lambda x: np.sqrt(np.abs(x)) * x + 1, {"x": "f32[100]"}, "exact")
    assert isinstance(answer, Offer)
    assert answer.exact
    assert answer.envelope is None


def test_a_chain_with_an_exponential_is_declined_where_bits_count():
    answer = offered(lambda x: np.exp(x) * x, {"x": "f32[100]"}, "exact")
    assert isinstance(answer, Decline)
    assert answer.code == "TP205"
    assert isinstance(offered(lambda x: np.exp(x) * x, {"x": "f32[100]"}), Offer)


@pytest.mark.parametrize("jump", [lambda y: y > 0.5, np.floor, np.sign, lambda y: y.astype(np.int32)])
def test_what_jumps_never_stands_on_what_is_rounded_otherwise(jump):
    answer = offered(lambda x: jump(np.tanh(x) * x), {"x": "f32[100]"})
    assert isinstance(answer, Decline)
    assert answer.code == "TP205"
    assert "tanh" in answer.reason
    assert isinstance(offered(lambda x: jump(x * x + 1), {"x": "f32[100]"}), Offer)


def test_an_op_without_a_kernel_is_named():
    answer = offered(lambda x: np.power(x, x) + 1, {"x": "i32[100]"})
    assert isinstance(answer, Decline)
    assert (answer.code, answer.reason) == ("TP206", "no kernel computes a power of i32")


def test_a_plan_takes_what_pays_and_runs_it():
    tape = trace(chain, x="f32[300,400]", y="f32[300,400]", bias="f32[400]")
    plan = tp.plan(tape, machine="reference", fidelity="exact")
    assert [d.match.pattern for d in plan.taken] == ["elementwise_chain"]
    x, y, bias = (numbers("f32", shape, k) for k, shape in enumerate([(300, 400), (300, 400), (400,)]))
    assert same_bits(plan.run(x, y, bias), chain(x, y, bias).astype(np.float32))


def test_preparing_twice_compiles_once():
    tape, match = match_of(chain, {"x": "f32[30,40]", "y": "f32[30,40]", "bias": "f32[40]"})
    first, second = (prepare(tape, match, {}) for _ in range(2))
    (one,), (other,) = first.cuts.values(), second.cuts.values()
    assert one.kernel is other.kernel


REDUCED = {
    "rows": (lambda x: np.abs(x).sum(-1), "5,N"),
    "columns": (lambda x: np.abs(x).sum(0), "5,N"),
    "between": (lambda x: np.abs(x).sum(1), "3,4,N"),
    "around": (lambda x: np.abs(x).sum((0, 2)), "3,4,N"),
    "all": (lambda x: np.abs(x).sum(), "3,N"),
}


@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "f16"])
@pytest.mark.parametrize("width", [-1, 0, 1])
@pytest.mark.parametrize("name", REDUCED)
def test_reductions_along_any_axes(name, width, dtype):
    function, shape = REDUCED[name]
    spec = f"{dtype}[{shape.replace('N', str(4 * host().lanes('f32') + width))}]"
    tape, match = match_of(function, {"x": spec}, "elementwise_reduction")
    arrays = arrays_of(tape, match)
    got = run(tape, match, arrays)
    want = in_exact(tape, match, {key: array.astype(np.float64) for key, array in arrays.items()})
    if dtype == "i32":
        want = in_exact(tape, match, arrays)
        assert np.array_equal(got.reshape(-1), want["root"].reshape(-1))
    else:
        bound = {"f16": 1e-3, "f32": 2e-7, "f64": 1e-15}[dtype]
        np.testing.assert_allclose(got.reshape(-1).astype(np.float64), want["root"].reshape(-1), rtol=bound)


@pytest.mark.parametrize("axis", [0, 1, 2, (0, 2), (0, 1)])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, -0.0])
def test_maxima_follow_the_rules_wherever_they_stand(axis, special):
    def function(x):
        return x - x.max(axis, keepdims=True) * 2

    tape, match = match_of(function, {"x": "f32[3,5,37]"}, "reduction_elementwise")
    arrays = arrays_of(tape, match)
    arrays["x0"] = np.where(np.arange(37) % 9 == 4, np.float32(special), -np.abs(arrays["x0"]))
    got = run(tape, match, arrays)
    assert same_bits(got, in_exact(tape, match, arrays)["root"].reshape(got.shape))


@pytest.mark.parametrize("count", [(1 << 15) - 1, 1 << 15, (1 << 15) + 1, 100_003])
def test_long_rows_are_cut_to_parts_and_give_the_same_for_any_number_of_threads(count):
    tape, match = match_of(lambda x: np.abs(x).sum(), {"x": f"f32[{count}]"}, "elementwise_reduction")
    arrays = arrays_of(tape, match)
    results = [run(tape, match, arrays, threads) for threads in (1, 2, 4)]
    assert results[0] == results[1] == results[2]
    np.testing.assert_allclose(results[0], np.abs(arrays["x0"].astype(np.float64)).sum(), rtol=2e-7)


def test_a_sum_of_nothing_is_zero():
    tape, match = match_of(lambda x: np.abs(x).sum(0), {"x": "f32[0,7]"}, "elementwise_reduction")
    assert run(tape, match, {"x0": np.zeros((0, 7), np.float32)}).tolist() == [0.0] * 7


def test_siblings_fill_all_their_results():
    def program(x, y):
        return (x + y) * 0.5, (x - y) * 0.5, np.abs(x)

    tape, match = match_of(program, {"x": "f32[5,37]", "y": "f32[5,37]"}, "sibling_elementwise")
    arrays = arrays_of(tape, match)
    out = {"result": np.full((5, 37), 7, np.float32)} | {n: np.full((5, 37), 7, np.float32) for n in match.named}
    make_runner(tape, match).run(arrays, out, 1)
    for name, want in in_exact(tape, match, arrays).items():
        assert same_bits(out["result" if name == "root" else name], want)
