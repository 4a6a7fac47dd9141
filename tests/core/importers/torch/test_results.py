"""What a module returns comes back nested as it was: dicts, records of classes, objects that hold tensors."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

import topos_core as tp
from tests.core.importers.torch.check import imported, torch

Pair = namedtuple("Pair", "first second")


@dataclasses.dataclass
class Answer:
    """A class that export does not know."""

    logits: Any
    hidden: Any = None


class Layer:
    """A layer of a cache, as decoders return it."""

    is_sliding = False

    def __init__(self, keys: Any) -> None:
        self.keys = keys
        self.filled = True


class Cache:
    """What a decoder returns besides its result."""

    def __init__(self, layers: list[Layer]) -> None:
        self.layers = layers
        self.offloading = None


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def run(function: Any) -> Any:
    return tp.plan(imported(function, torch.zeros(2, 3)), machine="reference").run(X)


@pytest.mark.parametrize("make", [Answer, Pair], ids=["dataclass", "named tuple"])
def test_a_class_comes_back_as_a_record_of_its_fields(make: Any) -> None:
    result = run(lambda x: make(x * 2, x + 1))
    names = [field.name for field in dataclasses.fields(Answer)] if make is Answer else Pair._fields
    np.testing.assert_array_equal(getattr(result, names[0]), X * 2)
    np.testing.assert_array_equal(result[names[1]], X + 1)
    np.testing.assert_array_equal(result[0], X * 2)


def test_a_field_without_a_tensor_is_what_it_was() -> None:
    assert run(lambda x: Answer(x * 2)).hidden is None


def test_containers_keep_their_nesting() -> None:
    result = run(lambda x: OrderedDict(a=x * 2, b=[x, (x + 1, None)]))
    assert list(result) == ["a", "b"]
    assert isinstance(result["b"], list)
    first, (second, nothing) = result["b"]
    np.testing.assert_array_equal(first, X)
    np.testing.assert_array_equal(second, X + 1)
    assert nothing is None


def test_an_object_is_what_of_it_leads_to_tensors() -> None:
    result = run(lambda x: (x * 2, Cache([Layer(x + 1), Layer(x + 2)])))
    cache = result[1]
    assert cache._fields == ("layers",)
    assert [layer._fields for layer in cache.layers] == [("keys",), ("keys",)]
    np.testing.assert_array_equal(cache.layers[1].keys, X + 2)


def test_what_a_cache_holds_is_returned_and_so_read() -> None:
    tape = imported(lambda x: (x * 2, Cache([Layer(x + 1)])), torch.zeros(2, 3))
    assert [tape.ops[value].name for value in tape.results] == ["mul", "add"]
    assert {each.kind for each in tape.observations} == {"output"}


def test_a_decoder_of_transformers_returns_its_cache() -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config = transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=50, bos_token_id=0, eos_token_id=0)
    model = transformers.GPT2Model(config).eval()
    ids = np.arange(8, dtype=np.int64).reshape(1, 8)
    tape = tp.trace(model, input_ids="i64[1,8]<50")
    result = tp.plan(tape, machine="reference").run(ids)
    with torch.no_grad():
        wanted = model(torch.from_numpy(ids))
    np.testing.assert_allclose(result.last_hidden_state, wanted.last_hidden_state.numpy(), rtol=1e-4, atol=1e-5)
    name = list(wanted)[1]  # versions call it differently
    keys = wanted[name].layers[1].keys
    np.testing.assert_allclose(result[name].layers[1].keys, keys.numpy(), rtol=1e-4, atol=1e-5)


def test_a_module_that_was_exported_before_keeps_its_results():
    class Two(torch.nn.Module):
        def forward(self, x):
            return {"sum": x + 1, "pair": (x * 2, x - 1)}

    exported = torch.export.export(Two(), (torch.zeros(2, 3),)).module()
    tape = tp.trace(exported, "f32[2,3]")
    assert len(tape.results) == 3
    assert [tape.ops[value].name for value in tape.results] == ["add", "mul", "sub"]


def test_a_result_that_is_no_value_is_told_at_the_module():
    class Says(torch.nn.Module):
        def forward(self, x):
            return {"y": x + 1, "what": "text"}

    with pytest.raises(tp.TraceError, match=r"test_results\.py:\d+:\d+: the result\['what'\] is a str"):
        tp.trace(Says(), "f32[2,3]")
