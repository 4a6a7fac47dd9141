"""One turn of softmax along rows: the powers of a row, the quotients of the row before, the maximum of the row behind.

Each of the three waits for something else: arithmetic, stores, loads. One loop keeps all of them busy; three loops take
their sum (a third more for 4096 rows of 1024).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils, types

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import LINE
from topos_core.kernels.vocabulary.emitter import INT64, Emitter
from topos_core.kernels.vocabulary.rows import low_bits, with_arity
from topos_core.kernels.vocabulary.scalar import Scalar
from topos_core.kernels.vocabulary.totals import UNROLLED, across_lanes

AHEAD: Final = 4096
"""How many bytes early the row behind is asked for: 0.93 ms instead of 1.31 where nothing is, 1.1 at twice the distance."""
Power = Callable[[Emitter, Any], Any]
_WORDS = ("target", "waiting", "factor", "powers", "total", "source", "top", "following", "length", "streamed")


def softmax_turn(host: Host, scalar: Scalar, power: Power) -> Any:
    """Makes `turn(target, waiting, factor, powers, total, source, top, following, length, streamed) -> maximum`.

    powers[i] = power(source[i] - top), total[0] (f64) is their sum, target[i] = waiting[i] * factor, and the maximum is the
    largest number of `following`; NaN is passed over. `streamed` is not 0 where targets are to go past the caches.
    """

    def turn(context: Any, *_: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            return _Turn(builder, host, scalar, power, dict(zip(_WORDS, given, strict=True))).write()

        address, number = types.int64, scalar.numba
        kinds = {"factor": number, "top": number}
        return number(*(kinds.get(word, address) for word in _WORDS)), generate

    return with_arity(turn, ("context", *_WORDS))


class _Turn:
    """Writes one turn."""

    def __init__(self, builder: Any, host: Host, scalar: Scalar, power: Power, given: dict[str, Any]) -> None:
        self.builder, self.host, self.scalar, self.power, self.given = builder, host, scalar, power, given
        self.lanes = host.lanes(scalar.name)
        self.vector = Emitter(builder, ir.VectorType(scalar.llvm, self.lanes))
        self.single = Emitter(builder, scalar.llvm)

    def write(self) -> Any:
        builder, given = self.builder, self.given
        rows = ("target", "waiting", "powers", "source", "following")
        self.rows = {name: builder.inttoptr(given[name], self.scalar.llvm.as_pointer()) for name in rows}
        self.splats = {name: self.vector.splat(given[name]) for name in ("factor", "top")}
        # stack slots become registers
        self.sums = [self.slot(self.vector, 0.0) for _ in range(UNROLLED)]
        self.tops = [self.slot(self.vector, float("-inf")) for _ in range(UNROLLED)]
        rest, highest = self.slot(self.single, 0.0), self.slot(self.single, float("-inf"))
        done = cgutils.alloca_once_value(builder, ir.Constant(INT64, 0))
        if self.vector.bytes == LINE:
            off = builder.and_(given["target"], ir.Constant(INT64, LINE - 1))
            fits = builder.icmp_signed("==", off, ir.Constant(INT64, 0))
            streamed = builder.and_(fits, builder.icmp_signed("!=", given["streamed"], ir.Constant(INT64, 0)))
            with builder.if_else(streamed) as (past, through):
                with past:
                    builder.store(self.registers(self.vector.stream), done)
                with through:
                    builder.store(self.registers(self.vector.store), done)
        else:
            builder.store(self.registers(self.vector.store), done)
        left = builder.load(done)
        if self.host.masked:
            with builder.if_then(builder.icmp_signed("<", left, given["length"])):
                self.masked_tail(left)
        else:
            with cgutils.for_range_slice(builder, left, given["length"], ir.Constant(INT64, 1), inc=True) as (at, _):
                self.element(at, rest, highest)
        self.add_up(rest)
        top = builder.load(self.tops[0])
        for slot in self.tops[1:]:
            top = self.larger(top, builder.load(slot))
        return self.larger(across_lanes(builder, top, self.larger), builder.load(highest))

    def registers(self, store: Callable[[Any, Any], None]) -> Any:
        """Runs whole registers, some side by side, then one by one; gives what is done."""
        builder, done = self.builder, ir.Constant(INT64, 0)
        for count in (UNROLLED, 1):
            step = ir.Constant(INT64, self.lanes * count)
            whole = builder.mul(builder.sdiv(builder.sub(self.given["length"], done), step), step)
            end = builder.add(done, whole)
            with cgutils.for_range_slice(builder, done, end, step, inc=True) as (at, _):
                for k in range(count):
                    place = builder.add(at, ir.Constant(INT64, k * self.lanes))
                    source, waiting, following = (
                        self.vector.load(self.at(name, place)) for name in ("source", "waiting", "following")
                    )
                    found = self.power(self.vector, self.vector.sub(source, self.splats["top"]))
                    self.vector.store(found, self.at("powers", place))
                    store(self.vector.mul(waiting, self.splats["factor"]), self.at("target", place))
                    self.vector.prefetch(
                        self.at("following", builder.add(place, ir.Constant(INT64, AHEAD // self.scalar.bytes)))
                    )
                    self.collect(k, found, following)
            done = end
        return done

    def masked_tail(self, done: Any) -> None:
        builder, vector = self.builder, self.vector
        mask = vector.mask(low_bits(builder, builder.sub(self.given["length"], done), self.lanes))
        source, waiting, following = (
            vector.masked_load(self.at(name, done), mask) for name in ("source", "waiting", "following")
        )
        found = self.power(vector, vector.sub(source, self.splats["top"]))
        vector.masked_store(found, self.at("powers", done), mask)
        vector.masked_store(vector.mul(waiting, self.splats["factor"]), self.at("target", done), mask)
        kept = builder.select(mask, found, vector.constant(0.0))
        self.collect(1, kept, builder.select(mask, following, vector.constant(float("-inf"))))

    def element(self, at: Any, rest: Any, highest: Any) -> None:
        builder, single, given = self.builder, self.single, self.given
        found = self.power(single, single.sub(builder.load(self.at("source", at)), given["top"]))
        builder.store(found, self.at("powers", at))
        builder.store(single.mul(builder.load(self.at("waiting", at)), given["factor"]), self.at("target", at))
        builder.store(single.add(builder.load(rest), found), rest)
        builder.store(self.larger(builder.load(self.at("following", at)), builder.load(highest)), highest)

    def collect(self, chain: int, found: Any, following: Any) -> None:
        builder, total, top = self.builder, self.sums[chain], self.tops[chain]
        builder.store(self.vector.add(builder.load(total), found), total)
        builder.store(self.larger(following, builder.load(top)), top)

    def add_up(self, rest: Any) -> None:
        builder = self.builder
        total = builder.load(self.sums[0])
        for slot in self.sums[1:]:
            total = self.vector.add(total, builder.load(slot))
        summed = self.single.add(across_lanes(builder, total, builder.fadd), builder.load(rest))
        wide = builder.fpext(summed, ir.DoubleType()) if self.scalar.bytes == 4 else summed
        builder.store(wide, builder.inttoptr(self.given["total"], ir.DoubleType().as_pointer()))

    def larger(self, a: Any, b: Any) -> Any:
        """Emits the machine's own maximum: b where either is NaN, so a NaN in `a` is passed over."""
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def at(self, name: str, place: Any) -> Any:
        return self.builder.gep(self.rows[name], [place])

    def slot(self, emitter: Emitter, value: float) -> Any:
        slot = cgutils.alloca_once(self.builder, emitter.type)
        self.builder.store(emitter.constant(value), slot)
        return slot
