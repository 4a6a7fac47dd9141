"""What targets lose when they expand a named op: measured, as data. `benchmarks/raise_fidelity.py` prints these rows.

Errors are max|got - f64| / max|f64| over a result, on x of shape [256, 4] in f32 with the probe's mean and deviation 1.
A raise keeps fidelity where its error is at most `WORSE` times what the recorded ops lose on the same target, or what
rounding the input once loses (no algorithm is to blame for less).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from topos_core.kernels.kernel import Dialect

WORSE: Final = 16.0


class Measured(NamedTuple):
    """One measurement of a raise on a target."""

    dialect: Dialect
    version: str
    pattern: str
    probe: str
    raised_error: float
    recorded_error: float
    rounding_error: float
    expansion: str

    @property
    def keeps_fidelity(self) -> bool:
        """Tells whether the raise loses no more than it may."""
        return self.raised_error <= WORSE * max(self.recorded_error, self.rounding_error)


MEASURED: Final = (
    Measured(
        "xla", "jaxlib 0.10.2, CPU", "batch_norm_training", "mean 1000, deviation 1",
        4.4e-2, 1.7e-5, 6.0e-5, "a one-pass variance, E[x*x] - E[x]*E[x]",
    ),
    Measured(
        "xla", "jaxlib 0.10.2, CPU", "batch_norm_inference", "mean 1000, deviation 1",
        1.4e-5, 5.6e-8, 6.0e-5, "one scale and one shift per channel",
    ),
    Measured(
        "iree", "IREE 3.13.0, llvm-cpu", "batch_norm_training", "mean 1000, deviation 1",
        3.1e-1, 9.7e-5, 6.0e-5, "a one-pass variance, E[x*x] - E[x]*E[x]",
    ),
    Measured(
        "iree", "IREE 3.13.0, llvm-cpu", "batch_norm_inference", "mean 1000, deviation 1",
        4.2e-8, 4.2e-8, 6.0e-5, "the recorded formula",
    ),
)  # fmt: skip


def measured(dialect: Dialect, pattern: str) -> Measured | None:
    """Gives the newest measurement of a raise on a target; rows of newer versions stand further up."""
    rows = (row for row in MEASURED if row.dialect == dialect and row.pattern == pattern)
    return next(rows, None)
