import threading
from dataclasses import dataclass

import numpy as np
import pytest

import topos_core as tp
from topos_core import nn
from topos_core.errors import ConfigurationError
from topos_core.run.executor import execute, make_program, owned, run
from topos_core.run.interpreter import interpret


def block(x, first, scale, shift, mean, variance, second, bias):
    hidden = nn.conv2d(x, first, padding=1)
    hidden = nn.relu(nn.batch_norm(hidden, mean, variance, scale, shift))
    hidden = nn.conv2d(hidden, second, bias, padding=1)
    return nn.max_pool(nn.relu(hidden + x), 2)


SPECS = (
    tp.f32[2, 8, 12, 12], tp.f32[8, 8, 3, 3], tp.f32[8], tp.f32[8], tp.f32[8], tp.f32[8], tp.f32[8, 8, 3, 3], tp.f32[8],
)  # fmt: skip


def arrays_of(tape, seed=0):
    random = np.random.default_rng(seed)
    return [random.random(tape.ops[value].type.shape).astype(np.float32) for value in tape.inputs]


def normalised(x, scale, shift):
    mean = x.mean((0, 2), keepdims=True)
    variance = ((x - mean) ** 2).mean((0, 2), keepdims=True)
    tp.observe(mean, "mean")
    tp.observe(variance, "variance")
    return (x - mean) / np.sqrt(variance + 1e-5) * scale[:, None] + shift[:, None]


def test_a_plan_gives_what_the_interpreter_gives_within_the_envelope():
    tape = tp.trace(block, *SPECS)
    plan = tp.plan(tape, cost="always")
    assert {d.match.pattern for d in plan.taken} == {"conv_bn_activation", "window_reduce"}
    given = arrays_of(tape)
    (expected,) = interpret(tape, given)
    np.testing.assert_allclose(plan.run(*given), expected, rtol=1e-5)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_exact_plans_have_the_interpreters_bits_for_any_number_of_threads(threads):
    tape = tp.trace(block, *SPECS)
    plan = tp.plan(tape, cost="always", fidelity="exact")
    assert {d.match.pattern for d in plan.taken} == {"window_reduce", "elementwise_chain"}
    given = arrays_of(tape)
    (expected,) = interpret(tape, given)
    np.testing.assert_array_equal(plan.run(*given, threads=threads), expected)


def test_named_results_come_back_from_the_fused_run():
    tape = tp.trace(normalised, tp.f32[4, 3, 20], tp.f32[3], tp.f32[3])
    plan = tp.plan(tape, cost="always")
    assert [d.match.pattern for d in plan.taken] == ["batch_norm_training"]
    x, *_ = given = arrays_of(tape)
    result, observed = plan.run(*given, observed=True)
    np.testing.assert_allclose(observed["mean"], x.mean((0, 2), keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(observed["variance"], x.var((0, 2), keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(result, interpret(tape, given)[0], rtol=1e-5, atol=1e-6)


def test_parameters_are_bound_once_and_a_later_write_to_them_changes_nothing():
    tape = tp.trace(block, *SPECS)
    names = [tape.names[value] for value in tape.inputs]
    weights = dict(zip(names, arrays_of(tape), strict=True))
    x = weights.pop("x")

    def frozen(x):
        return block(x, **weights)

    plan = tp.plan(tp.trace(frozen, SPECS[0]), cost="always")
    first = plan.run(x)
    for array in weights.values():
        array += 1.0
    np.testing.assert_array_equal(plan.run(x), first)


def test_given_parameters_replace_snapshots():
    weight = np.ones((4, 3, 200), np.float32)
    plan = tp.plan(tp.trace(lambda x: x * weight, tp.f32[4, 3, 200]), parameters={})
    tape = plan.tape
    (value,) = tape.parameters
    other = tp.plan(tape, parameters={value: weight * 3})
    x = np.ones((4, 3, 200), np.float32)
    np.testing.assert_array_equal(plan.run(x), weight)
    np.testing.assert_array_equal(other.run(x), weight * 3)


def test_inputs_are_never_written_to_and_results_are_the_callers_own():
    def views(x, y):
        total = x + y
        return {"same": x, "view": x.T, "sum": total, "again": [total, total.reshape(-1)], "none": None}

    tape = tp.trace(views, tp.f32[2, 3], tp.f32[2, 3])
    plan = tp.plan(tape)
    x, y = np.ones((2, 3), np.float32), np.full((2, 3), 2, np.float32)
    result = plan.run(x, y)
    arrays = [result["same"], result["view"], result["sum"], *result["again"]]
    assert result["none"] is None
    for k, array in enumerate(arrays):
        assert array.flags.writeable
        assert array.flags.c_contiguous
        assert not any(np.shares_memory(array, other) for other in (x, y, *arrays[:k]))
        array[...] = -1
    np.testing.assert_array_equal(x, 1)
    np.testing.assert_array_equal(plan.run(x, y)["sum"], 3)


class Lent:
    """Bytes of another library, which NumPy asks it for."""

    def __init__(self):
        self.bytes = np.arange(16, dtype=np.uint8)

    def __array__(self, dtype=None, copy=None):
        return self.bytes


class Kept(np.ndarray):
    """An array of another class."""


@pytest.mark.parametrize(
    "made",
    [
        lambda: np.frombuffer(bytearray(range(16)), np.uint8),
        lambda: np.arange(16, dtype=np.uint8).view(Kept),
        lambda: np.arange(16, dtype=np.uint8).view(Kept).reshape(16),
        Lent,
    ],
    ids=["frombuffer", "subclass", "view of a subclass", "__array__"],
)
@pytest.mark.parametrize("function", [lambda x: x, lambda x: x.reshape(4, 4), lambda x: (x.reshape(2, 8), x + 1)])
def test_results_share_nothing_with_bytes_of_another_owner(made, function):
    given = made()
    result = tp.plan(tp.trace(function, tp.u8[16])).run(given)
    for array in result if isinstance(result, tuple) else (result,):
        assert not np.shares_memory(array, np.asarray(given))


@dataclass
class Pair:
    first: object
    second: object


def test_structures_come_back_and_records_have_their_fields():
    tape = tp.trace(lambda x: (Pair(x + 1, [x * 2]), {"k": x}), tp.f32[2])
    pair, rest = tp.plan(tape).run(np.ones(2, np.float32))
    np.testing.assert_array_equal(pair.first, 2)
    np.testing.assert_array_equal(pair.second[0], 2)
    np.testing.assert_array_equal(rest["k"], 1)


def test_large_buffers_are_used_again_and_results_that_live_are_not():
    def pools(x):
        return nn.max_pool(nn.max_pool(x, 2, stride=1), 2, stride=1)

    tape = tp.trace(pools, tp.f32[1, 8, 200, 200])
    plan = tp.plan(tape, cost="always")
    program = make_program(plan.data)
    x = arrays_of(tape)
    (expected,) = interpret(tape, x)
    kept = [run(plan.data, x, program=program) for _ in range(5)]
    for result in kept:
        np.testing.assert_array_equal(result, expected)
    assert len({result.__array_interface__["data"][0] for result in kept}) == 5
    address = kept[0].__array_interface__["data"][0]
    view = kept[0][0, 0]
    kept.clear()
    assert run(plan.data, x, program=program).__array_interface__["data"][0] != address  # `view` still looks there
    np.testing.assert_array_equal(view, expected[0, 0])


def test_several_threads_may_run_one_plan():
    tape = tp.trace(block, *SPECS)
    plan = tp.plan(tape, cost="always")
    inputs = [arrays_of(tape, seed) for seed in range(4)]
    expected = [plan.run(*given, threads=1) for given in inputs]
    failures = []

    def work(k):
        for _ in range(20):
            got = plan.run(*inputs[k], threads=2)
            if not np.array_equal(got, expected[k]):
                failures.append(k)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []


def test_known_arithmetic_runs_once_when_the_plan_is_made_ready():
    weight = np.arange(12, dtype=np.float32).reshape(3, 4) + np.zeros((3, 4), np.float32)
    table = np.tile(weight, (8, 8))
    tape = tp.trace(lambda x: x @ np.exp(table.T * 0.001), tp.f32[2, 32])
    program = make_program(tp.plan(tape).data)
    assert [tape.ops[step.value].name for step in program.steps] == ["matmul"]
    x = np.ones((2, 32), np.float32)
    (expected,) = interpret(tape, [x])
    plan = tp.plan(tape, fidelity="exact")
    np.testing.assert_array_equal(plan.run(x), expected)


def test_wrong_inputs_are_refused_with_both_types():
    plan = tp.plan(tp.trace(lambda x: x + 1, tp.f32[2]))
    with pytest.raises(ConfigurationError, match=r"f32\[3\]"):
        plan.run(np.ones(3, np.float32))
    with pytest.raises(ConfigurationError, match="2 inputs given"):
        plan.run(np.ones(2, np.float32), np.ones(2, np.float32))


def test_execute_gives_every_kept_value():
    tape = tp.trace(normalised, tp.f32[4, 3, 20], tp.f32[3], tp.f32[3])
    plan = tp.plan(tape)
    values = execute(make_program(plan.data), plan.data, arrays_of(tape))
    assert set(values) == {*tape.results, *plan.data.observed}


@pytest.mark.parametrize(
    ("function", "fresh"),
    [
        (lambda x: x + 1, True),
        (lambda x: (x + 1, nn.softmax(x)), True),
        (lambda x: x, False),
        (lambda x: (x + 1).T, False),
        (lambda x: (lambda y: (y, y))(x + 1), False),
        (lambda x: (lambda y: (y, y.reshape(-1)))(x + 1), False),
    ],
)
def test_results_that_are_known_to_be_the_callers_own_are_found_to_be_when_looked_at(function, fresh):
    plan = tp.plan(tp.trace(function, tp.f32[300, 300]), cost="always").data
    program = make_program(plan)
    assert program.fresh is fresh
    x = [np.ones((300, 300), np.float32)]
    values = execute(program, plan, x, 1)
    results = [values[value] for value in plan.tape.results]
    looked_at = owned(results, x, program)
    assert fresh == all(own is result for own, result in zip(looked_at, results, strict=True))
