"""Models of `transformers` from their configurations: random weights, nothing is downloaded."""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")

SMALL = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 100,
}
DECODER = {**SMALL, "num_key_value_heads": 2, "max_position_embeddings": 64, "use_cache": False}


def make(name: str, attention: str = "sdpa", **options: Any) -> Any:
    """Builds `Bert` from `BertConfig` and `BertModel`."""
    import transformers

    config = getattr(transformers, f"{name}Config")(**options)
    config._attn_implementation = attention
    return getattr(transformers, f"{name}Model")(config)


def bert(attention: str = "sdpa", **options: Any) -> Any:
    return make("Bert", attention, **options)


def bert_base() -> Any:
    return bert()


def llama_7b() -> Any:
    return make("Llama", use_cache=False)
