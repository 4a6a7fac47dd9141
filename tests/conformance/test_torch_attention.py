"""Every attention of real models is taken, alone or with its projections, however the model spells its mask, and nothing else is said of it."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

import topos_core as tp
from tests.conformance.torch_models.zoo import Model, models
from topos_core.importers.torch_export.record import record_torch
from topos_core.importers.torch_export.target import Target
from topos_core.run.proof import prove

MODELS = {model.name: model for model in models()}
BLOCKS = {
    "Swin, small": 4,
    "nn.TransformerDecoder": 8,
    "nn.TransformerEncoder": 4,
    "T5, sdpa": 6,
    "T5, eager": 6,
    "Whisper, sdpa": 6,
    "Whisper, eager": 6,
    "ViT, small": 2,
}
BLOCKS |= {
    f"{name}, {kind}": 2
    for kind in ("sdpa", "eager")
    for name in (
        "BERT", "RoBERTa", "DistilBERT", "GPT-2", "Llama", "Mistral", "Mixtral", "Qwen2", "Gemma", "CLIP vision",
        "ViT (transformers)", "DINOv2", "SAM encoder", "wav2vec2",
    )
}  # fmt: skip
QUICK = ("Swin, small", "RoBERTa, eager", "SAM encoder, eager")
"""A relative position table and a window mask; a mask that varies with the query alone; two halves of a relative bias."""


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.conformance) for name in BLOCKS]
)
def test_every_attention_of_a_model_is_taken_and_proved(name):
    plan = planned(MODELS[name])
    found = [match for match in plan.planner.pool.matches if match.pattern == "attention" and not match.nearer]
    blocks = [each for each in plan.taken if each.match.pattern in ("attention", "multi_head_attention")]
    assert len(found) == len(blocks) == BLOCKS[name]
    assert [proof.verdict for proof in prove(plan.tape, found)] == ["proved"] * len(found)
    assert [miss.sentence for miss in plan.near_misses if miss.pattern == "attention"] == []


def planned(model: Model) -> tp.Plan:
    positional, named = (model.specs, {}) if isinstance(model.specs, tuple) else ((), model.specs)
    return tp.plan(record_torch(Target(model.build, "factory"), tuple(positional), dict(named)), machine="reference")
