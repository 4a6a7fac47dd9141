"""`window_reduce`: pooling by maximum, minimum or sum, one axis after the other where two neighbouring axes slide.

A window of m x n values costs m + n - 2 combinations instead of m * n - 1. Maximum and minimum are order-free, so they
are exact: NaN wins and -0 < +0, as recorded. Sums of integers wrap and are exact too; sums of floats are not.

Declines: TP205 for sums of floats where bits must equal the recorded ones; TP206 for windows over a dilated base and for
scaled integers.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topos_core.cost.work import Work
from topos_core.kernels.envelopes import envelope, unmeasured
from topos_core.kernels.kernel import Decline, Offer, Stages, Terms
from topos_core.kernels.prepared import Prepared
from topos_core.kernels.windows.passes import passes
from topos_core.kernels.windows.runner import Runner, apart_of, make_runner, stage_of
from topos_core.matching.counting import divisors
from topos_core.matching.facts import WindowReduceFacts
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape
from topos_core.tape.type import FLOATS


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers one pass per pair of neighbouring windowed axes."""
    facts: WindowReduceFacts = match.facts
    x, root = tape.ops[match.bindings["x"]].type, tape.ops[match.root].type
    if any(window.base_dilation != 1 for window in facts.windows):
        return Decline("TP206", "no-kernel", "home has no kernel for windows over an image with holes between elements")
    if facts.is_average and x.dtype not in FLOATS:
        return Decline("TP206", "no-kernel", f"home has no kernel for an average of {x.dtype}; cast to a float first")
    exact = facts.reducer != "sum" or x.dtype not in FLOATS
    measured = None if exact else envelope(match.pattern, root.dtype)
    if measured is None and not exact:
        return unmeasured(match.pattern, root.dtype)
    if measured is not None and terms.fidelity == "exact":
        return Decline(
            "TP205", "fidelity",
            "the kernel adds along one axis after the other, so its bits differ from the recorded sum; ask for fidelity fast",
            {"relative_error": measured.relative},
        )  # fmt: skip
    steps = passes(x.shape, facts.windows)
    combined = sum(step.result_size * (step.down.size + step.across.size) for step in steps)
    between = sum(step.result_size for step in steps[:-1]) * x.bytes // max(x.size, 1)
    divided = 0 if facts.counted is None else root.bytes  # the result is read and written once more
    table = (
        0
        if facts.counted is None
        else divisors(facts.windows, facts.counted, x.shape).size * root.bytes // max(root.size, 1)
    )
    work = Work(
        flops=combined + root.size * (facts.counted is not None),
        bytes_read=x.bytes + between + divided + table,
        bytes_written=root.bytes + between + divided,
    )
    return Offer(
        kernel=f"{facts.reducer} over windows, axis by axis",
        work=work,
        exact=exact,
        envelope=measured,
        efficiency=0.25,
        stages=Stages(lambda: (stage_of(facts, x, root),)),
        apart=apart_of(facts, x, root),
    )


def prepare(tape: Tape, match: Match, constants: Mapping[int, np.ndarray]) -> Prepared:
    """Compiles the reducer's kernel."""
    x = tape.ops[match.bindings["x"]].type
    runner: Runner = make_runner(match.facts, x.dtype, x.shape)
    return runner
