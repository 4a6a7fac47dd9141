"""The end of a register tile while it still is in registers: scale, shift, residual, limits, and stores by runs of lanes.

What `finish` does for a tile that was stored first; that pass through the cache takes as long as 20 steps of a tile.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from topos_core.kernels.vocabulary.emitter import INT64


class _Run(NamedTuple):
    """Where the lanes of a register go: elements from the start of a row, and which lanes, as an `i64`; twice."""

    place: Any
    bits: Any
    second: Any
    more: Any


def write_ending(tile: Any, sums: list[Any]) -> None:
    """Stores finished sums; rows that do not exist are left out.

    Args:
        tile: Gives `builder`, `emitter`, `rows`, `vectors`, and words of its block by name.
        sums: Its registers, row by row.
    """
    _Ending(tile).write(sums)


class _Ending:
    """Writes the end of a tile."""

    def __init__(self, tile: Any) -> None:
        self.tile, self.builder, self.emitter = tile, tile.builder, tile.emitter

    def write(self, sums: list[Any]) -> None:
        builder, tile = self.builder, self.tile
        limits = tile.address("limits")
        self.low, self.high = (self.element(limits, k) for k in range(2))
        runs = builder.inttoptr(tile.word("runs"), INT64.as_pointer())
        self.runs = [
            _Run(*(builder.load(builder.gep(runs, [tile.number(4 * v + k)])) for k in range(4)))
            for v in range(tile.vectors)
        ]
        adds = builder.icmp_signed("!=", tile.word("residual"), tile.number(0))
        with builder.if_else(adds) as (with_residual, without):
            with with_residual:
                self.rows(sums, tile.address("residual"))
            with without:
                self.rows(sums, None)

    def rows(self, sums: list[Any], residual: Any) -> None:
        builder, emitter, tile = self.builder, self.emitter, self.tile
        out, stride, present = tile.address("out"), tile.word("out_stride"), tile.word("rows")
        scale, shift = tile.address("scale"), tile.address("shift")
        last = builder.icmp_signed("!=", tile.word("residual_last"), tile.number(0))
        done = builder.append_basic_block("ended")
        for r in range(tile.rows):
            if r:
                following = builder.append_basic_block("row")
                builder.cbranch(builder.icmp_signed("<", tile.number(r), present), following, done)
                builder.position_at_end(following)
            factor, summand = self.element(scale, r), self.element(shift, r)
            row = builder.gep(out, [builder.mul(stride, tile.number(r))])
            for v, run in enumerate(self.runs):
                value = emitter.fma(sums[r * tile.vectors + v], factor, summand)
                if residual is None:
                    value = self.limited(value)
                else:
                    at = builder.gep(residual, [builder.mul(tile.word("residual_stride"), tile.number(r))])
                    added = self.loaded(at, run)
                    value = self.limited(builder.select(last, value, emitter.add(value, added)))
                    value = builder.select(last, emitter.add(value, added), value)
                emitter.masked_store(value, builder.gep(row, [run.place]), emitter.mask(run.bits))
                with builder.if_then(self.continues(run)):
                    emitter.masked_store(value, builder.gep(row, [run.second]), emitter.mask(run.more))
        builder.branch(done)
        builder.position_at_end(done)

    def limited(self, value: Any) -> Any:
        return self.emitter.at_most(self.emitter.at_least(value, self.low), self.high)

    def loaded(self, row: Any, run: _Run) -> Any:
        """Loads what is added from both places of a register's lanes."""
        builder, emitter = self.builder, self.emitter
        first = emitter.masked_load(builder.gep(row, [run.place]), emitter.mask(run.bits))
        before = builder.block
        with builder.if_then(self.continues(run)):
            mask = emitter.mask(run.more)
            both = builder.select(mask, emitter.masked_load(builder.gep(row, [run.second]), mask), first)
            inside = builder.block
        value = builder.phi(emitter.type)
        value.add_incoming(first, before)
        value.add_incoming(both, inside)
        return value

    def continues(self, run: _Run) -> Any:
        return self.builder.icmp_signed("!=", run.more, self.tile.number(0))

    def element(self, base: Any, at: int) -> Any:
        return self.emitter.splat(self.builder.load(self.builder.gep(base, [self.tile.number(at)])))
