"""Predicts what one recorded op costs when it runs by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from topos_core.cost.machine import Machine
from topos_core.cost.memory import Placement
from topos_core.cost.work import Work
from topos_core.tape.op import Op
from topos_core.tape.type import TensorType, numpy_dtype


class Estimate(NamedTuple):
    """What one recorded op costs: counted work with its copies, calls (0 where the value exists before the run or is a
    view), and modelled seconds."""

    work: Work
    calls: int
    seconds: float


def recorded_op(
    op: Op, operands: Sequence[TensorType], kind: str, work: Work, placement: Placement, machine: Machine
) -> Estimate:
    """Predicts one recorded op: the larger of compute and traffic, plus its copies and its call.

    `kind` and `work` are the op definition's; `placement` says what it copies and whether it is a view.
    """
    if op.name in ("input", "parameter", "constant"):
        return Estimate(Work(), 0, 0.0)
    rates = machine.recorded
    itemsize = numpy_dtype(op.type.dtype).itemsize
    copied_bytes = placement.copied * itemsize
    if kind == "movement" and not placement.allocated_bytes:
        return Estimate(Work(), 0, rates.view_seconds + rates.extra_seconds.get(op.name, 0.0))
    if copied_bytes:
        work = work + Work(bytes_read=copied_bytes, bytes_written=copied_bytes)
    # Measured 2.1, 1.3 and 0.1 ns an element at runs of 1, 3 and 56 (`benchmarks/numpy_rates.py`).
    copy_seconds = placement.copied * rates.strided_element_seconds * min(1.0, 1.8 / placement.run)
    compute = _compute_seconds(op, operands, kind, work, machine)
    cached = work.bytes_moved <= machine.cache_bytes
    traffic = work.bytes_moved / (machine.cache_bytes_per_second if cached else rates.memory_bytes_per_second)
    call = rates.call_seconds + rates.extra_seconds.get(op.name, 0.0)
    return Estimate(work, 1, max(compute, traffic) + copy_seconds + call)


def _compute_seconds(op: Op, operands: Sequence[TensorType], kind: str, work: Work, machine: Machine) -> float:
    rates = machine.recorded
    dtype = op.type.dtype
    if kind == "contraction":
        return _matmul_seconds(operands, work, machine)
    elements = op.type.size if kind == "elementwise" else max((t.size for t in operands), default=op.type.size)
    if kind == "lookup":
        elements = operands[-1].size if op.name == "scatter_add" else op.type.size
    if kind in ("elementwise", "reduction") and dtype in ("f16", "bf16"):
        return elements * rates.half_element_seconds
    seconds = elements * rates.element_seconds.get(op.name, 0.0) * rates.dtype_factors.get(dtype, 1.0)
    if kind == "reduction":
        seconds += _rows(op, operands[0]) * rates.row_seconds
    return seconds


def _matmul_seconds(operands: Sequence[TensorType], work: Work, machine: Machine) -> float:
    """BLAS where it has the dtype: the rate falls with the smallest of m, n, k."""
    a, b = operands
    rates = machine.recorded
    if a.dtype not in ("f32", "f64"):
        return work.flops / rates.plain_flops_per_second
    smallest = min(a.shape[-2], a.shape[-1], b.shape[-1])
    share = smallest / (smallest + rates.contraction_half_extent)
    if not share:
        return 0.0
    return work.flops / (machine.flops_per_second[a.dtype] * rates.contraction_efficiency * share)


def _rows(op: Op, operand: TensorType) -> int:
    """Counts innermost rows where the innermost axis is reduced: NumPy pays for each one; else its loop is long."""
    axes = op.attributes.get("axes", (op.attributes.get("axis"),))
    rank = len(operand.shape)
    if rank - 1 not in axes or not operand.size:
        return 0
    inner = 1
    for axis in range(rank - 1, -1, -1):
        if axis not in axes:
            break
        inner *= operand.shape[axis]
    return math.prod(operand.shape) // inner
