"""An index that torch refuses is an error here too, and not another element."""

from __future__ import annotations

import pytest

from tests.core.importers.torch.check import Calling, array_of, check, imported, interpret, opaque, torch, trace
from topos_core import plan
from topos_core.errors import ConfigurationError

F = torch.nn.functional


@pytest.mark.parametrize(
    ("lookup", "counts_from_the_end"),
    [
        (lambda a, i: F.embedding(i, a), False),
        (lambda a, i: a.index_select(0, i), False),
        (lambda a, i: a.gather(1, i[:, None]), False),
        (lambda a, i: torch.zeros(4, 4).index_add(0, i, a), False),
        (lambda a, i: F.one_hot(i, 4), False),
        (lambda a, i: a[i], True),
        (lambda a, i: a[i, i], True),
    ],
)
def test_an_index_outside_is_an_error_as_in_torch(lookup, counts_from_the_end):
    a = torch.arange(16.0).reshape(4, 4)
    tape = imported(lookup, a, torch.tensor([0, 1, 2, 3]))
    assert opaque(tape) == []
    if counts_from_the_end:
        check(lookup, a, torch.tensor([0, -1, -4, 3]))
    for outside in (4, -5) if counts_from_the_end else (4, -1):
        index = torch.tensor([0, outside, 2, 3])
        with pytest.raises((IndexError, RuntimeError)):
            lookup(a, index)
        with pytest.raises(ConfigurationError, match=f"index {outside if outside > 0 else '-'}"):
            interpret(tape, [array_of(a), array_of(index)])


def test_a_class_outside_is_an_error_as_in_torch():
    logits, target = torch.randn(3, 5), torch.tensor([0, 5, 1])
    tape = trace(Calling(lambda x, t: F.cross_entropy(x, t)), "f32[3,5]", "i64[3]<6")
    assert opaque(tape) == []
    with pytest.raises((IndexError, RuntimeError)):
        F.cross_entropy(logits, target)
    for run in (
        lambda: interpret(tape, [array_of(logits), array_of(target)]),
        lambda: plan(tape).run(array_of(logits), array_of(target)),
    ):
        with pytest.raises(ConfigurationError, match="index 5 is out of range for an axis of 5; use 0 to 4"):
            run()


def test_what_torch_takes_modulo_the_extent_is_never_outside():
    a, index = torch.arange(16.0).reshape(4, 4), torch.tensor([[0], [5], [-5], [3]])
    check(lambda a, i: [torch.take_along_dim(a, i, 1), torch.take_along_dim(a[:1], i, 1)], a, index)
    check(torch.take_along_dim, a, index.abs())
