"""Losses of torch over class numbers are recorded, and found where their logits are in the same program."""

from __future__ import annotations

from typing import Any

import pytest

import topos_core as tp
from tests.core.importers.torch.check import Calling, opaque, torch

F, nn = torch.nn.functional, torch.nn
GENERATOR = torch.Generator().manual_seed(3)

LOSSES = {
    "mean": lambda x, t: F.nll_loss(F.log_softmax(x, 1), t),
    "sum": lambda x, t: F.nll_loss(F.log_softmax(x, dim=1), t, reduction="sum"),
    "none": lambda x, t: F.nll_loss(x.log_softmax(1), t, reduction="none"),
    "module": lambda x, t: nn.NLLLoss()(nn.LogSoftmax(dim=1)(x), t),
    "cross entropy": lambda x, t: F.cross_entropy(x, t),
}


@pytest.mark.parametrize("shape", [(6, 10), (2, 5, 3, 4), (7,)], ids=str)
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_over_class_numbers_is_a_cross_entropy(name: str, shape: tuple[int, ...]) -> None:
    classes = shape[1] if len(shape) > 1 else shape[0]
    at = (shape[0], *shape[2:]) if len(shape) > 1 else ()
    logits = torch.randn(shape, generator=GENERATOR)
    target = torch.randint(classes, at, generator=GENERATOR)
    function = LOSSES[name] if len(shape) > 1 else _along_the_only_axis(name)
    module = Calling(function)
    plan = tp.plan(tp.trace(module, tp.f32[shape], tp.i64[at] < classes), cost="always")
    assert [one.pattern for one in plan.patterns] == ["cross_entropy"]
    found, wanted = plan.run(logits.numpy(), target.numpy()), module(logits, target).numpy()
    torch.testing.assert_close(torch.as_tensor(found), torch.as_tensor(wanted), rtol=1e-5, atol=1e-5)


def _along_the_only_axis(name: str) -> Any:
    reduction = name if name in ("mean", "sum", "none") else "mean"
    if name == "cross entropy":
        return LOSSES[name]
    return lambda x, t: F.nll_loss(F.log_softmax(x, 0), t, reduction=reduction)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, t: F.nll_loss(x, t, weight=torch.ones(10)),
        lambda x, t: F.nll_loss(x, t, ignore_index=2),
    ],
    ids=["class weights", "an ignored class"],
)
def test_what_has_no_formula_is_opaque(function: Any) -> None:
    tape = tp.trace(Calling(function), tp.f32[6, 10], tp.i64[6] < 10)
    assert len(opaque(tape)) == 1


def test_a_class_that_is_none_is_refused_by_every_run() -> None:
    plan = tp.plan(tp.trace(Calling(LOSSES["mean"]), tp.f32[3, 5], tp.i64[3] < 9), cost="always")
    logits = torch.randn(3, 5, generator=GENERATOR).numpy()
    with pytest.raises(tp.ConfigurationError, match="5"):
        plan.run(logits, torch.tensor([0, 5, 1]).numpy())
