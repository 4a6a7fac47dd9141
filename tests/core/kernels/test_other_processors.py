"""Kernels for a processor that is not this one: the words of the vocabulary lower for AArch64 too."""

import functools

import llvmlite.binding as llvm
import pytest

import topos_core as tp
from topos_core.errors import ToposError
from topos_core.kernels.host import describe
from topos_core.kernels.library import compile_kernel
from topos_core.kernels.watching import watching
from topos_core.matching.catalog import patterns
from topos_core.run.program import make_program

MACHINE_OF_ELF = slice(18, 20)
AARCH64 = (183).to_bytes(2, "little")


@functools.cache
def target():
    """Describes a processor with NEON and nothing more."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return describe("aarch64-unknown-linux-gnu", "generic", "+neon", frozenset({"neon"}))


@functools.cache
def asked():
    """Lists the kernels that the patterns' examples ask for, by name and variant."""
    with watching() as seen:
        for pattern in patterns().values():
            for example in pattern.examples:
                try:
                    tape = tp.trace(example.function, **example.specs)
                except ToposError:
                    continue  # an example of a framework that is not here
                make_program(tp.plan(tape, cost="always").data)
    return tuple(seen.asked)


def check(name, variant):
    code = compile_kernel(name, variant, target())
    assert code[:4] == b"\x7fELF"
    assert code[MACHINE_OF_ELF] == AARCH64


def test_the_vector_units_of_aarch64_are_known():
    assert (target().vector_bytes, target().registers, target().masked) == (16, 32, False)


KINDS = [
    ("tile", ("f32", "8x2")), ("crew", ("follow",)), ("softmax_rows", ("f32", "softmax")), ("planes", ("f32",)),
    ("channel_norm", ("f32",)), ("unary", ("f32", "gelu_erf")), ("spread", ("f64",)), ("depthwise_steps", ("f32", "silu", "whole")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "variant"), KINDS, ids=lambda part: part if isinstance(part, str) else "-".join(part))
def test_a_kernel_of_each_kind_compiles_for_aarch64(name, variant):
    check(name, variant)


@pytest.mark.conformance
def test_every_kernel_that_the_examples_run_compiles_for_aarch64():
    started = (("row_statistics", ("f32",)), ("merge_statistics", ("f32",)), ("normalise", ("f32", "planes")))
    kernels = dict.fromkeys(
        (*KINDS, *asked(), *started, ("crew", ("lead",)), ("winograd", ("f32", "4")), ("winograd", ("f32", "2")))
    )
    assert len({name for name, _ in kernels}) > 15
    for name, variant in kernels:
        check(name, variant)
