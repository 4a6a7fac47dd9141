"""What the page is measured on: synthetic decoders without an agent, a NumPy decoder and real models that the agent traces."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.web.documents import Document
from topos_web.agents import AgentPlanner
from topos_web.plans import Progress, Traced, untold

MODEL: Final = '''\
import numpy as np
import topos_core as tp

def norm(x, scale):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5) * scale

def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

def layer(x, mask, w, scale):
    h = norm(x, scale[0])
    q, k, v = h @ w[0], h @ w[1], h @ w[2]
    x = x + (softmax(q @ k.T * 0.125 + mask) @ v) @ w[3]
    h = norm(x, scale[1])
    gate = h @ w[4]
    return x + (gate / (1 + np.exp(-gate)) * (h @ w[5])) @ w[6]

@tp.model(x=tp.f32[32, 64], mask=tp.f32[32, 32], w=tp.f32[7, 64, 64], scale=tp.f32[2, 64])
def decode(x, mask, w, scale):
    for i in range(LAYERS):
        x = layer(x, mask, w, scale)
        if i == LAYERS // 3:
            tp.observe(x * 2, "middle")
    return x
'''  # fmt: skip
OPS_PER_LAYER: Final = 69
REAL: Final = {
    "ResNet-50": "transformers.ResNetModel(transformers.ResNetConfig())",
    "BERT-base": "transformers.BertModel(transformers.BertConfig())",
    "decoder": (
        "transformers.LlamaModel(transformers.LlamaConfig(num_hidden_layers=86, hidden_size=256, intermediate_size=512, "
        "num_attention_heads=8, num_key_value_heads=8, use_cache=False))"
    ),
}
"""Real models, of transformers; the decoder records about 10,000 ops."""
SPECS: Final = {"ResNet-50": "f32[1,3,224,224]", "BERT-base": "i64[2,48]<100", "decoder": "i64[1,32]<100"}


class TracedOnce(AgentPlanner):
    """Keeps what it traced: a server that starts again asks for it again."""

    _kept: Sequence[Traced] = ()

    def trace(self, progress: Progress = untold) -> Iterator[Traced]:
        self._kept = self._kept or list(super().trace(progress))
        yield from self._kept


class TracedTarget(NamedTuple):
    """A target that the agent has traced, and how long that took."""

    planner: AgentPlanner
    target: str
    document: Document
    seconds: float


@contextlib.contextmanager
def numpy_decoder(ops: int) -> Iterator[TracedTarget]:
    """Traces a decoder of about so many ops, with a value observed in one of its layers."""
    with _traced(MODEL.replace("LAYERS", str(max(1, ops // OPS_PER_LAYER)))) as found:
        yield found


@contextlib.contextmanager
def real_model(name: str) -> Iterator[TracedTarget]:
    """Traces a model of torch as transformers has it."""
    marks = f"# topos: entry inputs={SPECS[name]}\ndef model():\n    return {REAL[name]}.eval()\n"
    with _traced(
        f"import os\n\nos.environ['HF_HUB_OFFLINE'] = '1'\nimport torch\nimport transformers\n\n\n{marks}"
    ) as found:
        yield found


@contextlib.contextmanager
def _traced(text: str) -> Iterator[TracedTarget]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.py"
        path.write_text(text)
        planner = TracedOnce([str(path)])
        try:
            begun = time.perf_counter()
            (traced,) = planner.trace()
            seconds = time.perf_counter() - begun
            if traced.document is None:
                raise RuntimeError(f"the model was not traced: {traced.error}")
            yield TracedTarget(planner, traced.target, dict(traced.document), seconds)
        finally:
            planner.close()
