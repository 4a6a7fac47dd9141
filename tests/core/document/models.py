"""A small model with its source, a pool by hand and plans of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.core.plan.consumers import Answers, Found
from tests.core.plan.matches import match
from tests.support.tapes import TapeBuilder
from topos_core.cost.work import Work
from topos_core.document.places import split_lines
from topos_core.document.plan_document import plan_document
from topos_core.kernels.kernel import Decline, Envelope, Offer
from topos_core.matching.match import Match, NearMiss
from topos_core.plan.planner import Planner
from topos_core.plan.request import Request
from topos_core.tape.span import Frame, Location, Span
from topos_core.tape.tape import Note, Tape

SOURCE = """\
import numpy as np
import topos_core as tp


def main(x, w, bias):
    turned = x.T
    product = turned @ w
    tp.observe(product, "product")
    hidden = np.maximum(product + bias, 0)
    return hidden
"""

KERNEL = Offer(
    "8x48 tile", Work(flops=540_000, bytes_read=49_152, bytes_written=16_384), False, Envelope(2e-6, 1e-6, "linear/1")
)
LOOP = Offer("loop nest", Work(flops=8_192, bytes_read=32_768, bytes_written=16_384), True)
NAMED = Offer("stablehlo.dot_general", Work(flops=540_000, bytes_read=49_152, bytes_written=16_384), False)


def span(text: str, line: int, source: str = SOURCE, path: str = "/home/me/project/model.py") -> Span:
    """Finds a piece of a line."""
    column = split_lines(source)[line - 1].index(text)
    return Span(path, line, column, line, column + len(text))


@dataclass
class Model:
    """`maximum(x.T @ w + bias, 0)` with as many layers as asked for, all recorded at the same lines."""

    source: str = SOURCE
    observe: str | None = 'tp.observe(product, "product")'
    name: str | None = "product"
    kind: Any = "observe"
    layers: int = 1
    path: str = "/home/me/project/model.py"
    notes: tuple[Note, ...] = ()
    scope: tuple[str, ...] = ()
    matches: dict[str, Match] = field(default_factory=dict)

    def tape(self) -> Tape:
        b = TapeBuilder(self.source)
        b.scope = self.scope
        rows: dict[int, Span] = {}

        def at(value: int, text: str) -> int:
            line = next(k + 1 for k, row in enumerate(split_lines(self.source)) if text in row)
            rows[b.ops[value].location] = span(text, line, self.source, self.path)
            return value

        x = at(b.input("x", "f32[64,64]"), "main(x, w, bias)")
        w = at(b.parameter("w", "f32[64,64]"), "main(x, w, bias)")
        bias = at(b.parameter("bias", "f32[64,64]"), "main(x, w, bias)")
        value = x
        self.matches = {}
        values = []
        for layer in range(self.layers):
            turned = at(b.op("permute", value, order=(1, 0)), "x.T")
            product = at(b.op("matmul", turned, w, accumulate="f32"), "turned @ w")
            if self.observe is not None:
                row = b.observe(product, self.name.format(layer) if self.name else None, self.kind)
                line = next(k + 1 for k, text in enumerate(split_lines(self.source)) if self.observe in text)
                rows[b.readers[row].location] = span(self.observe, line, self.source, self.path)
            summed = at(b.op("add", product, bias), "product + bias")
            zero = at(b.constant(0.0, "f32[64,64]"), "np.maximum(product + bias, 0)")
            out = at(b.op("maximum", summed, zero), "np.maximum(product + bias, 0)")
            values.append((value, product, out))
            value = out
        tape = b.tape(value)
        locations = tuple(
            Location(
                (Frame(rows.get(k, span("return hidden", 10, SOURCE)._replace(path=self.path)), "main", "user"),),
                self.scope,
            )
            for k in range(len(tape.locations))
        )
        tape = replace(tape, locations=locations, sources={self.path: self.source}, notes=self.notes)
        for k, (into, product, out) in enumerate(values):
            suffix = "" if self.layers == 1 else str(k)
            self.matches[f"whole{suffix}"] = match(
                tape, "linear_bias_activation", out, {"x": into, "w": w, "bias": bias}
            )
            self.matches[f"linear{suffix}"] = match(tape, "linear", product, {"x": into, "w": w})
            self.matches[f"chain{suffix}"] = match(tape, "elementwise_chain", out, {"a": product, "b": bias})
        return tape


def document(
    model: Model,
    *picked: str,
    answers: Mapping[str, Offer | Decline] | None = None,
    request: Request | None = None,
    near: Sequence[NearMiss] = (),
    root: str | None = "/home/me/project",
    **options: Any,
) -> dict[str, Any]:
    """Plans a model with a pool by hand for both consumers and serialises it."""
    tape = model.tape()
    found = Found([model.matches[name] for name in picked or model.matches], near)
    home = {"linear": KERNEL, "linear_bias_activation": KERNEL, "elementwise_chain": LOOP} | dict(answers or {})
    raises = dict.fromkeys(("linear", "linear_bias_activation"), NAMED)
    raises["elementwise_chain"] = Decline("TP206", "no-kernel", "the dialect has no name for it")
    planner = Planner(tape, found, {"home": Answers("home", home), "stablehlo": Answers("stablehlo", raises)})
    request = request or Request(machine="reference")
    other = Request(consumer="stablehlo", machine="reference", observe=request.observe, ignore=request.ignore)
    return plan_document(planner.plan(request), "model.py:main", others=(planner.decide(other),), root=root, **options)
