"""What this machine's vector unit looks like to a kernel: lanes, registers, masked stores."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import Final

from topos_core.tape.type import numpy_dtype

BASELINE: Final = {"x86_64": frozenset({"sse", "sse2"}), "aarch64": frozenset({"neon"})}
"""Features that every machine of an architecture has."""
ZEN_4: Final = "znver4"
ZEN_5: Final = "znver5"
"""What LLVM calls the processors on which ways of doing things were measured that others need not share."""


@dataclass(frozen=True, slots=True)
class Host:
    """The code generator's target.

    Args:
        triple: LLVM's name of the target.
        cpu: LLVM's name of the processor.
        features: LLVM's feature string, `+avx2,-avx512f`.
        vector_bytes: Width of the widest vector register.
        registers: How many vector registers there are.
        masked: Whether a store may leave lanes out at the speed of a plain one.
    """

    triple: str
    cpu: str
    features: str
    vector_bytes: int
    registers: int
    masked: bool

    @property
    def key(self) -> str:
        """Names the target; compiled code of one key runs on no other."""
        return f"{self.triple} {self.cpu} {self.features} {self.vector_bytes} {self.registers} {self.masked}"

    @property
    def reads_far_rows(self) -> bool:
        """Whether tiles read rows that lie in a page each as fast as a copy of them.

        Measured with 1x1 convolutions of 56x56 images: a copy takes a tenth more on a Zen 4, 7 to 13 % more on a Zen 5, and a sixth less on an
        Intel Xeon (rocketlake), as which others are taken.
        """
        return self.cpu in (ZEN_4, ZEN_5)

    @property
    def fetches_streams(self) -> bool:
        """Whether the processor itself asks for memory that is read in several long rows as early as pays.

        Measured with sums over two arrays of 64 MB: requests of ours cost 4 to 25 % on a Zen 4, 6 to 10 % by medians on a Zen 5, and gain a tenth on an Intel
        Xeon (rocketlake), as which others are taken.
        """
        return self.cpu in (ZEN_4, ZEN_5)

    @property
    def takes_left_whole(self) -> bool:
        """Whether a product takes a left operand that leaves the second-level cache in one part: in several, each reads every panel again.

        Measured with 512 rows of 768 (1.5 MB): one part takes 0.93 to 0.95 of the time on a Zen 5, whose second-level cache has 1 MB, and 1.05
        on an Intel Xeon of 2 MB, as which others are taken.
        """
        return self.cpu == ZEN_5

    @property
    def waits_for_lines(self) -> bool:
        """Whether a tile's stores wait for the lines that they write, so that these are asked for before its products.

        Measured on a Zen 5 alone, by medians in turns: a 7x7 convolution with a result of 3.2 MB takes 0.96 to 0.97 of the time, a product with
        one of 6.3 MB 0.99; a 1x1 convolution with one of 0.8 MB 1.00 to 1.04.
        """
        return self.cpu == ZEN_5

    @property
    def waits_for_rows(self) -> bool:
        """Whether rows of an image that lie in a page each come late, so that tiles ask for the next ones and keep those that they read.

        Measured on a Zen 5 alone, by medians in turns: a 1x1 convolution of 256x56x56 takes 0.92 to 0.94 of the time (1.00 where nobody else
        uses its third-level cache), 8 of 512x33x32 0.86; a depthwise and a pointwise one of 128x56x56 0.96 and 1.00.
        """
        return self.cpu == ZEN_5

    @property
    def shares_panels(self) -> bool:
        """Whether two of Winograd's tiles read a panel one after the other: half of the reading, twice the sums.

        Measured on a Zen 5 alone, by medians in turns: 0.94 to 1.00 of the time (64 channels of 56x56), 0.91 (4 images) and 0.91 to 0.93 (8
        images of 128 channels of 28x28, whose operands stay in the second-level cache then).
        """
        return self.cpu == ZEN_5

    def lanes(self, dtype: str) -> int:
        """Counts the elements of a vector register."""
        return self.vector_bytes // numpy_dtype(dtype).itemsize


@cache
def host() -> Host:
    """Asks LLVM for this machine; `NUMBA_CPU_NAME` and `NUMBA_CPU_FEATURES` replace what it finds, as they do in numba."""
    import llvmlite.binding as llvm

    triple = llvm.get_process_triple()
    found = {name for name, present in llvm.get_host_cpu_features().items() if present}
    features = llvm.get_host_cpu_features().flatten()
    cpu = os.environ.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name()
    if cpu == "generic":
        found, features = set(BASELINE.get(triple.split("-")[0], ())), ""
    if "NUMBA_CPU_FEATURES" in os.environ:
        features = os.environ["NUMBA_CPU_FEATURES"]
        for flag in filter(None, features.split(",")):
            (found.add if flag[0] == "+" else found.discard)(flag[1:])
    return describe(triple, cpu, features, frozenset(found))


def describe(triple: str, cpu: str, features: str, found: frozenset[str]) -> Host:
    """Derives lanes and registers from the names of a target's features."""
    if {"avx512f", "avx512vl", "avx512dq", "avx512bw"} <= found:
        return Host(triple, cpu, features, 64, 32, True)
    if {"avx2", "fma"} <= found:
        return Host(triple, cpu, features, 32, 16, False)
    return Host(triple, cpu, features, 16, 32 if triple.startswith("aarch64") else 16, False)
