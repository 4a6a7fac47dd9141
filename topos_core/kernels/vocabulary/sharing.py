"""How the workers of a job share its items: each begins with a part of its own and then helps with the others' parts.

The parts are those of the same worker in the next job and the next run, so what it reads and writes is mostly where it
left it: on processors with caches of their own, memory that another one wrote last costs several times as much. Each part
counts on a cache line of its own, so taking an item of one's own part waits for nobody.

The counters stand at the address in an argument block's first word: how many parts there are, and from the next line on
one line for each. Its second word is the number of items.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from topos_core.kernels.vocabulary.blocks import LINE
from topos_core.kernels.vocabulary.memory import INT64

_NAME: Final = "topos_take"


def take_item(builder: Any, block: Any, worker: Any) -> Any:
    """Writes the call that takes an item: gives its number, or the number of items where none is left."""
    function = builder.module.globals.get(_NAME) or _written(builder.module)
    return builder.call(function, [block, worker])


def _take(context: Any, block: Any, worker: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return take_item(builder, *arguments)

    return types.int64(types.int64, types.int64), generate


take = intrinsic(_take)
"""`take(block, worker)` gives a number of an item that nobody has taken, or the number of items where none is left."""


def _written(module: Any) -> Any:
    """Writes the function (block, worker) once for a module.

    for k in range(parts):
        part = (worker + k) % parts
        first, end = items * part // parts, items * (part + 1) // parts
        if counter[part] < end - first:  # looks before it counts: a part that is done stays in everybody's cache
            item = first + counter[part]++
            if item < end: return item
    return items
    """
    function = ir.Function(module, ir.FunctionType(INT64, [INT64, INT64]), _NAME)
    function.linkage = "internal"
    block, worker = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    head, look, claim, following, done = (
        function.append_basic_block(name) for name in ("head", "look", "claim", "following", "done")
    )

    def number(value: int) -> Any:
        return ir.Constant(INT64, value)

    words = builder.inttoptr(block, INT64.as_pointer())
    counters, items = (builder.load(builder.gep(words, [number(k)])) for k in range(2))
    parts = builder.load(builder.inttoptr(counters, INT64.as_pointer()))
    entry = builder.block
    builder.branch(head)

    builder.position_at_end(head)
    k = builder.phi(INT64)
    k.add_incoming(number(0), entry)
    builder.cbranch(builder.icmp_signed("<", k, parts), look, done)

    builder.position_at_end(look)
    part = builder.srem(builder.add(worker, k), parts)
    first = builder.sdiv(builder.mul(items, part), parts)
    end = builder.sdiv(builder.mul(items, builder.add(part, number(1))), parts)
    line = builder.mul(builder.add(part, number(1)), number(LINE))
    counter = builder.inttoptr(builder.add(counters, line), INT64.as_pointer())
    left = builder.icmp_signed("<", builder.load_atomic(counter, "monotonic", 8), builder.sub(end, first))
    builder.cbranch(left, claim, following)

    builder.position_at_end(claim)
    item = builder.add(first, builder.atomic_rmw("add", counter, number(1), "monotonic"))
    taken = function.append_basic_block("taken")
    builder.cbranch(builder.icmp_signed("<", item, end), taken, following)
    builder.position_at_end(taken)
    builder.ret(item)

    builder.position_at_end(following)
    k.add_incoming(builder.add(k, number(1)), following)
    builder.branch(head)

    builder.position_at_end(done)
    builder.ret(items)
    return function
