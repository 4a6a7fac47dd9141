"""What is compiled needs nothing of numba's or Python's runtime: kernels are loaded by processes that have no numba."""

import sys
import types

import pytest

from topos_core.kernels import library
from topos_core.kernels.host import host
from topos_core.kernels.vocabulary.memory import storer
from topos_core.kernels.vocabulary.scalar import SCALARS


def body(raises):
    store = storer(SCALARS["f64"])

    def kernel(host):
        def plain(args, worker):
            store(args, worker, 1.0)

        def raising(args, worker):
            if worker < 0:
                raise ValueError
            store(args, worker, 1.0)

        return raising if raises else plain

    return types.SimpleNamespace(kernel=kernel)


@pytest.mark.parametrize("raises", [False, True])
def test_a_kernel_that_can_raise_is_refused(raises, monkeypatch):
    monkeypatch.setitem(sys.modules, "topos_core.kernels.bodies.made", body(raises))
    if not raises:
        assert library.compile_kernel("made", (), host())[:4] == b"\x7fELF"
        return
    with pytest.raises(RuntimeError, match=r"can raise, .* numba_gil_ensure"):
        library.compile_kernel("made", (), host())
