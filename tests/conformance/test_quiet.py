"""Programs that mean what they say get no near miss: the examples, and models of torch and transformers."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import topos_core as tp
from tests.laws.test_certificates import EXAMPLES, shipped


def told(tape: tp.Tape) -> list[str]:
    """Lists what is told of a program as nearly recognised."""
    return [miss.sentence for miss in tp.plan(tape, machine="reference").near_misses]


@pytest.mark.parametrize("target", shipped())
def test_an_example_is_quiet(target: str) -> None:
    assert told(tp.load(f"{EXAMPLES}/{target}")) == []


FAMILIES = ("BERT, sdpa", "CLIP vision, eager", "DINOv2, sdpa", "GPT-2, eager", "Llama, eager", "Mixtral, eager", "T5, eager",
            "nn.TransformerEncoder", "ResNet, small", "U-Net, small", "ViT, small")  # fmt: skip
"""One of each family of layers, as small as they come."""


@pytest.mark.parametrize("name", FAMILIES)
def test_a_model_is_quiet(name: str) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    from tests.conformance.torch_models.zoo import models

    (model,) = (each for each in models() if each.name == name)
    specs = model.specs
    tape = tp.trace(model.build(), **specs) if isinstance(specs, Mapping) else tp.trace(model.build(), *specs)
    assert told(tape) == []
