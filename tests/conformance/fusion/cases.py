"""The helper of this folder: programs, what was recognised in them, and whether running the plan gives what was recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

import topos_core as tp
from tests.laws.outbidding import check_outbid
from topos_core.matching.certificate import certify
from topos_core.matching.match import Match
from topos_core.plan.decision import Decision
from topos_core.run.compare import compare
from topos_core.run.interpreter import interpret
from topos_core.tape.tape import Tape
from topos_core.tape.type import FLOATS, numpy_dtype

Test = TypeVar("Test", bound=Callable[..., Any])


def case(*numbers: int) -> Callable[[Test], Test]:
    """Names the situations of the corpus that a test is about; a test of the corpus reads them."""
    assert numbers

    def marked(test: Test) -> Test:
        return test

    return marked


def planned(function: Callable[..., Any], specs: Mapping[str, str], **options: Any) -> tp.Plan:
    """Plans a program with every legal match elected, and proves everything that was recognised in it."""
    plan = tp.plan(tp.trace(function, **specs), machine="reference", cost="always", **options)
    for match in pool(plan):
        assert certify(plan.tape, match).answer != "false", match.id
    for each in plan.declined:
        if each.outbid is not None and each.outbid.by != "cycle" and not each.would_block:
            check_outbid(plan.tape, plan.tape.users(), plan.data, each)
    return plan


def pool(plan: tp.Plan) -> tuple[Match, ...]:
    """Gives everything that was recognised, whatever was decided."""
    return plan.planner.pool.matches


def matches(plan: tp.Plan, pattern: str) -> list[Match]:
    """Lists the matches of one pattern, in the order of their roots."""
    return [match for match in pool(plan) if match.pattern == pattern]


def at_result(plan: tp.Plan, pattern: str, result: int = 0) -> Match:
    """Gives the largest match of a pattern at a result, seen through movement."""
    root = plan.tape.results[result]
    while plan.tape.ops[root].name in ("reshape", "permute", "broadcast", "slice", "cast"):
        found = [match for match in matches(plan, pattern) if match.root == root]
        if found:
            break
        root = plan.tape.ops[root].operands[0]
    found = [match for match in matches(plan, pattern) if match.root == root]
    assert found, f"no {pattern} at %{root}: {[match.id for match in pool(plan)]}"
    return max(found, key=lambda match: len(match.bindings))


def decision(plan: tp.Plan, match: Match) -> Decision | None:
    """Gives what was decided about a match."""
    return next((each for each in plan.data.decisions if each.match.id == match.id), None)


def taken(plan: tp.Plan, pattern: str) -> Decision:
    """Gives the one taken match of a pattern."""
    (found,) = [each for each in plan.taken if each.match.pattern == pattern]
    return found


def never_blocked(plan: tp.Plan, match: Match) -> None:
    """A match is taken, or declined for want of a kernel."""
    found = decision(plan, match)
    assert found is not None
    assert found.verdict == "taken" or found.code == "TP206", (found.verdict, found.reason)


def codes(plan: tp.Plan, pattern: str) -> list[str]:
    """Lists the codes of the near misses of a pattern, those noted above a match too."""
    told = [miss for miss in plan.planner.pool.near_misses if miss.pattern == pattern]
    told += [miss for match in matches(plan, pattern) for miss in match.stopped]
    return [miss.code for miss in told]


def inputs_of(tape: Tape, seed: int = 0, **given: np.ndarray) -> list[np.ndarray]:
    """Makes seeded inputs, positive where called a variance; `given` replaces some by name."""
    rng = np.random.default_rng(seed)
    arrays = []
    for value in tape.inputs:
        name, kind = tape.names.get(value, ""), tape.type_of(value)
        dtype = numpy_dtype(kind.dtype)
        if name in given:
            arrays.append(np.asarray(given[name], dtype).reshape(kind.shape))
        elif kind.dtype == "bool":
            arrays.append(rng.random(kind.shape) < 0.7)
        elif kind.dtype not in FLOATS:
            arrays.append(rng.integers(0, 4, kind.shape).astype(dtype))
        else:
            drawn = rng.standard_normal(kind.shape)
            arrays.append((np.abs(drawn) + 0.5 if "var" in name else drawn).astype(dtype))
    return arrays


def runs_as_recorded(plan: tp.Plan, seed: int = 0, **given: np.ndarray) -> None:
    """Running the plan keeps its fidelity, output by output, and NaN and infinities stand where they were recorded."""
    inputs = inputs_of(plan.tape, seed, **given)
    with np.errstate(all="ignore"):
        found = compare(plan.data, inputs)
    assert found.inside, found.sentences()


def recorded(plan: tp.Plan, seed: int = 0, **given: np.ndarray) -> list[np.ndarray]:
    """Gives what the recorded ops give."""
    with np.errstate(all="ignore"):
        return list(interpret(plan.tape, inputs_of(plan.tape, seed, **given)))


def run(plan: tp.Plan, seed: int = 0, **given: np.ndarray) -> list[np.ndarray]:
    """Gives what the plan gives."""
    with np.errstate(all="ignore"):
        answer = plan.run(*inputs_of(plan.tape, seed, **given))
    return list(answer) if isinstance(answer, tuple | list) else [answer]


def same_bits(got: np.ndarray, want: np.ndarray) -> bool:
    """Compares bit for bit, up to NaN."""
    number = ~np.isnan(want.astype(np.float64))
    return bool(np.array_equal(got, want, equal_nan=want.dtype.kind == "f")) and bool(
        (np.signbit(got[number].astype(np.float64)) == np.signbit(want[number].astype(np.float64))).all()
    )
