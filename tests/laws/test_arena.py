"""A run takes the arena that its plan predicts, and has the bits that it would have with a buffer for every value."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import topos_core as tp
from tests.core.matching.check import inputs_of
from topos_core import nn
from topos_core.errors import ToposError
from topos_core.matching.catalog import patterns
from topos_core.plan.plan import PlanData
from topos_core.run.interpreter import bind_inputs
from topos_core.run.pool import Pool
from topos_core.run.program import Program, RecordedStep, make_program


class Dirty(Pool):
    """Gives memory full of rubbish, and remembers what was asked for."""

    __slots__ = ("given",)

    def __init__(self) -> None:
        super().__init__()
        self.given: list[int] = []

    def memory(self, size: int) -> np.ndarray:
        self.given.append(size)
        memory = super().memory(size)
        memory[...] = 0xA5
        return memory


def check(plan: PlanData, given: Sequence[np.ndarray]) -> int:
    """Runs a plan in its arena and apart; gives the arena's bytes."""
    inputs = bind_inputs(plan.tape, given)
    program = make_program(plan)
    pool = Dirty()
    expected = {value: array.copy() for value, array in apart(program).run(inputs, 1, 1).items()}
    for threads in (1, 2):
        pool.given.clear()
        kept = replace(program, pool=pool).run(inputs, threads, 1)
        assert {value: array.tobytes() for value, array in kept.items()} == {
            value: array.tobytes() for value, array in expected.items()
        }
        outside = [buffer.bytes for buffer in plan.liveness.buffers if buffer.dropped is None]
        assert sorted(pool.given) == sorted([plan.arena.bytes, *outside, *empty(program)])
        assert sum(outside) == plan.arena.outside
    assert plan.liveness.peak_bytes <= plan.arena.bytes + plan.arena.outside + scratch(plan)
    return plan.arena.bytes


def apart(program: Program) -> Program:
    """Gives every value a buffer of its own."""

    def freed(target: Any) -> Any:
        return target and replace(target, offset=None, over=None)

    steps = [
        replace(step, target=freed(step.target))
        if isinstance(step, RecordedStep)
        else replace(
            step, target=freed(step.target), named=tuple((n, freed(target), rest) for n, target, rest in step.named)
        )
        for step in program.steps
    ]
    return replace(program, steps=tuple(steps), arena_bytes=0)


def empty(program: Program) -> list[int]:
    """Lists the buffers of no bytes, which lie nowhere."""
    targets = [step.target for step in program.steps if step.target is not None]
    targets += [target for step in program.steps if not isinstance(step, RecordedStep) for _, target, _ in step.named]
    return [0 for target in targets if target.size == 0 and target.over is None]


def scratch(plan: PlanData) -> int:
    """Counts the most that a step takes beside its buffers."""
    return max(plan.liveness.scratch, default=0)


def examples() -> list[Any]:
    return [
        pytest.param(example, id=f"{name}: {example.name}")
        for name, pattern in patterns().items()
        for example in pattern.examples
    ]


@pytest.mark.parametrize("example", examples())
def test_every_example_keeps_its_bits_in_the_arena(example: Any) -> None:
    try:
        tape = tp.trace(example.function, **example.specs)
        given = inputs_of(tape, 0)
        plans = [tp.plan(tape, fidelity=fidelity, cost="always").data for fidelity in ("fast", "exact")]
    except ToposError:
        pytest.skip("an example of a framework that is not here")
    for plan in plans:
        check(plan, given)


SHAPES = ((6, 4), (4, 6), (24,), (2, 3, 4), (1, 4), (6, 1))


def drawn(seed: int) -> Any:
    """Draws a program over a few shapes: views, copies, functions of one and of two values, sums, products."""
    chance = random.Random(seed)

    def program(x: Any, y: Any) -> Any:
        table = np.random.default_rng(seed).standard_normal((6, 4)).astype(np.float32)
        values = [x, y, x + table, table.T * np.float32(2) + y.T.reshape(4, 6)]
        for _ in range(chance.randint(6, 30)):
            a = chance.choice(values[-8:])
            made = moved(chance, a) if chance.random() < 0.4 else computed(chance, a, values)
            values.append(made)
            if chance.random() < 0.08:
                tp.observe(made, f"value {len(values)}")
        return [chance.choice(values[-4:]) for _ in range(chance.randint(1, 3))]

    return program


def moved(chance: random.Random, a: Any) -> Any:
    match chance.randrange(6):
        case 0:
            return a.reshape(chance.choice([shape for shape in SHAPES if np.prod(shape) == a.size] or [a.shape]))
        case 1:
            return a.transpose(chance.sample(range(a.ndim), a.ndim))
        case 2:
            return a[::-1] if a.shape[0] > 1 else a
        case 3:
            return a[1:, ...] if a.shape[0] > 1 else np.broadcast_to(a, (6, *a.shape[1:]))
        case 4:
            return np.concatenate([a, a], axis=chance.randrange(a.ndim))
        case _:
            return np.pad(a, 1)


def computed(chance: random.Random, a: Any, values: list[Any]) -> Any:
    alike = [value for value in values if value.shape == a.shape]
    match chance.randrange(9):
        case 0:
            return -a
        case 1:
            return np.tanh(a)
        case 2:
            return a + chance.choice(alike)
        case 3:
            return a * chance.choice(alike)
        case 4:
            return np.maximum(a, chance.choice(alike))
        case 5:
            return a - a.mean(chance.randrange(a.ndim), keepdims=True)
        case 6:
            return np.where(a > 0, a, chance.choice(alike))
        case 7:
            return (a.reshape(a.shape[0], -1) @ a.reshape(a.shape[0], -1).T).astype(np.float32)
        case _:
            return np.abs(a) / (a * a + np.float32(1))


def check_drawn(seed: int, **options: Any) -> int:
    tape = tp.trace(drawn(seed), tp.f32[6, 4], tp.f32[6, 4])
    return check(tp.plan(tape, **options).data, inputs_of(tape, seed))


def test_random_programs_keep_their_bits_in_the_arena() -> None:
    found = [check_drawn(seed, off=tuple(patterns())) for seed in range(200)]
    assert sum(size > 0 for size in found) > 150


@pytest.mark.parametrize("seed", range(8))
def test_random_plans_keep_their_bits_in_the_arena(seed: int) -> None:
    check_drawn(seed, cost="always", fidelity=("fast", "exact")[seed % 2])


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
@pytest.mark.parametrize("extents", ["5,5,5", "5,5,17", "1,5,5"])
def test_a_value_that_is_read_in_several_orders_is_not_written_over(extents: str, order: tuple[int, ...]) -> None:
    def program(x: Any) -> Any:
        made = np.concatenate([x[:, :, :1], x[:, :, 1:]], axis=2)  # which the sum reads last
        return made * 2 - made.transpose(order) if made.transpose(order).shape == made.shape else made * 2

    tape = tp.trace(program, f"f32[{extents}]")
    for cost, off in (("always", ()), ("always", patterns()), ("model", ())):
        plan = tp.plan(tape, fidelity="exact", cost=cost, off=tuple(off)).data
        check(plan, inputs_of(tape, 0))


def test_values_lie_where_the_plan_says() -> None:
    """Follows every array of a run: what is looked at is no copy, and what is written lies at its place."""

    def program(x: Any) -> Any:
        turned = nn.relu(nn.conv2d(x, np.ones((8, 8, 3, 3), np.float32), padding=1)).transpose(0, 2, 3, 1)
        flat = np.tanh(turned.reshape(-1, 8))
        return (flat + flat[::-1]) @ np.ones((8, 8), np.float32)

    tape = tp.trace(program, tp.f32[1, 8, 9, 9])
    plan = tp.plan(tape, cost="always").data
    program_ = make_program(plan)
    values: dict[int, np.ndarray] = dict(program_.known) | bind_inputs(tape, inputs_of(tape, 0))
    arena = program_.pool.memory(program_.arena_bytes)
    start = arena.ctypes.data
    for step in program_.steps:
        if isinstance(step, RecordedStep):
            program_._record(step, values, arena)
        else:
            program_._take(step, values, arena, 1)
        array, base = values[step.value], plan.liveness.written.get(step.value)
        if step.target is None:
            assert np.shares_memory(array, values[tape.ops[step.value].operands[0]]), tape.ops[step.value].name
        elif base is not None and base.base in plan.arena.offsets:
            assert array.ctypes.data == start + plan.arena.offsets[base.base]
    assert any(isinstance(step, RecordedStep) and step.target is None for step in program_.steps)
