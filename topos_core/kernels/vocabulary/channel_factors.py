"""What a batch norm multiplies a channel by, and what it adds, from the channel's statistics in f64."""

from __future__ import annotations

from typing import Any

from numba.extending import register_jitable

from topos_core.kernels.vocabulary.blocks import NORM
from topos_core.kernels.vocabulary.memory import loader, reader, square_root
from topos_core.kernels.vocabulary.scalar import SCALARS, Scalar


def channel_factors(scalar: Scalar) -> tuple[Any, Any]:
    """Makes `factor_of(args, channel, variance)` and `summand_of(args, channel, factor, moved)` of a `NORM` block, f64.

    With these, out = (x - center) * factor + summand, where the mean is center + `moved`.
    """
    get, load = reader(NORM), loader(scalar)
    load_double, wide = loader(SCALARS["f64"]), SCALARS["f64"].numba

    def factor_of(args, channel, variance):  # type: ignore[no-untyped-def]
        factor = 1.0 / square_root(variance + load_double(get(args, "epsilon"), 0))
        if get(args, "scale") != 0:
            factor *= wide(load(get(args, "scale"), channel))
        return factor

    def summand_of(args, channel, factor, moved):  # type: ignore[no-untyped-def]
        summand = 0.0
        if get(args, "shift") != 0:
            summand = wide(load(get(args, "shift"), channel))
        return summand - moved * factor

    # written into the kernel that calls them: what is compiled has one function
    here = register_jitable(inline="always")
    return here(factor_of), here(summand_of)
