"""Builds valid `topos.plan/1` documents for tests: three small models and synthetic ones of any size.

Nothing here decides anything: verdicts and sentences are written down as a plan would have told them, so that the page
and the server can be tested without recording, matching or planning.
"""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass, field
from math import prod
from typing import Any

Document = dict[str, Any]
WIDTHS = {"f32": 4, "f16": 2, "bf16": 2, "f64": 8, "i64": 8, "bool": 1}


def number(value: float, unit: str, basis: str = "modelled") -> dict[str, Any]:
    return {"value": value, "unit": unit, "basis": basis}


@dataclass
class Builder:
    """Collects ops against a source text; `at=(line, text)` points an op at the text's place on that line."""

    path: str
    source: str
    target: str
    names: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    scopes: list[list[str]] = field(default_factory=list)
    frames: list[list[Any]] = field(default_factory=list)
    locations: list[list[Any]] = field(default_factory=list)
    spans: list[int] = field(default_factory=list)
    ops: dict[str, list[Any]] = field(
        default_factory=lambda: {"name": [], "operands": [], "type": [], "location": [], "attributes": []}
    )
    inputs: list[dict[str, Any]] = field(default_factory=list)
    parameters: list[dict[str, Any]] = field(default_factory=list)
    observations: list[dict[str, Any]] = field(default_factory=list)
    regions: list[dict[str, Any]] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    _rows: dict[Any, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._intern(self.scopes, [])

    def _intern(self, table: list[Any], row: Any) -> int:
        key = (id(table), repr(row))
        if key not in self._rows:
            self._rows[key] = len(table)
            table.append(row)
        return self._rows[key]

    def span(self, at: tuple[int, str]) -> tuple[int, int, int, int]:
        line, text = at
        column = self.source.split("\n")[line - 1].index(text)
        return line, column, line, column + len(text)

    def place(self, at: tuple[int, str]) -> dict[str, Any]:
        line, column, end_line, end_column = self.span(at)
        return {"path": self.path, "line": line, "column": column, "end_line": end_line, "end_column": end_column}

    def location(self, calls: list[tuple[tuple[int, str], str]], scope: list[str]) -> int:
        """Interns a location; `calls` runs innermost first as ((line, text), function)."""
        rows = []
        for at, function in calls:
            frame = [0, *self.span(at), self._intern(self.functions, function), "user"]
            rows.append(self._intern(self.frames, frame))
        before = len(self.locations)
        row = self._intern(self.locations, [self._intern(self.scopes, scope), rows])
        if row == before:
            self.spans.append(rows[0])
        return row

    def op(
        self,
        name: str,
        operands: list[int],
        type_: str,
        at: tuple[int, str],
        attributes: str = "",
        *,
        function: str = "main",
        scope: list[str] | None = None,
        calls: list[tuple[tuple[int, str], str]] | None = None,
    ) -> int:
        self.ops["name"].append(self._intern(self.names, name))
        self.ops["operands"].append(list(operands))
        self.ops["type"].append(self._intern(self.types, type_))
        self.ops["location"].append(self.location(calls or [(at, function)], scope or []))
        self.ops["attributes"].append(attributes)
        value = len(self.ops["name"]) - 1
        if name == "input":
            self.inputs.append({"value": value, "name": attributes or f"x{value}"})
        if name == "parameter":
            self.parameters.append({"value": value, "name": attributes or f"p{value}"})
        return value

    def observe(self, value: int, kind: str, at: tuple[int, str], name: str | None, made: tuple[int, str]) -> int:
        location = self.location([(at, "main")], [])
        self.observations.append(
            {"value": value, "kind": kind, "name": name, "assumed": False, "location": location,
             **self.place(at), "value_span": self.place(made), "blocks": []}
        )  # fmt: skip
        return len(self.observations) - 1

    def region(self, pattern: str, verdict: str, nodes: list[int], spans: list[tuple[int, str]], **extra: Any) -> str:
        root = extra.pop("root", max(nodes))
        scope = extra.pop("scope", [])
        fingerprint = extra.pop("fingerprint", f"{zlib.crc32(f'{pattern} {len(nodes)}'.encode()):08x}")
        places = [self.place(at) for at in spans]
        occurrence = sum(1 for r in self.regions if r["pattern"] == pattern and r["scope"] == scope)
        region = {
            "id": f"{pattern}@{root}", "key": f"{pattern}/{fingerprint}/{'.'.join(scope)}/{occurrence}",
            "pattern": pattern, "verdict": verdict, "code": None, "word": None, "consumer": "home", "fidelity": "fast",
            "kernel": None, "scope": scope, "occurrence": occurrence, **places[0], "spans": places, "root": root,
            "nodes": sorted(nodes), "computing": [root], "bindings": {}, "named": {}, "contains": [], "parent": None,
            "winner": None, "fold": fingerprint, "headline": f"{pattern}: {verdict}", "reason": verdict, "details": [],
            "action": None, "flips_if": None, "facts": {}, "cost": {}, "envelope": None, "observations": [], "paths": [],
            "nearest_free": None, "fixes": [], "near_miss": None, "fingerprint": fingerprint, "others": {},
        }  # fmt: skip
        region.update(extra)
        self.regions.append(region)
        for observation in region["observations"]:
            self.observations[observation]["blocks"].append(region["id"])
        return region["id"]

    def document(self, results: list[int]) -> Document:
        count = len(self.ops["name"])
        counts = {
            v: sum(r["verdict"] == v for r in self.regions) for v in ("taken", "declined", "blocked", "near_miss")
        }
        sizes = [self._bytes(t) for t in self.ops["type"]]
        live, recorded, last = 0, [], list(range(count))
        for i, operands in enumerate(self.ops["operands"]):
            for operand in operands:
                last[operand] = i
        ends: dict[int, list[int]] = {}
        for i, end in enumerate(last):
            ends.setdefault(end, []).append(i)
        for i in range(count):
            live += sizes[i]
            recorded.append(live)
            live -= sum(sizes[j] for j in ends.get(i, []))
        taken = {n for r in self.regions if r["verdict"] == "taken" for n in r["nodes"] if n != r["root"]}
        steps = [i for i in range(count) if i not in taken]
        planned = [max(0, recorded[i] - sum(sizes[j] for j in taken if j < i <= last[j])) for i in steps]
        return {
            "schema": "topos.plan/1", "target": self.target, "consumer": "home", "fidelity": "fast",
            "machine": "reference", "cost": "model", "dialect": "portable", "digest": f"{count:064x}",
            "paths": [self.path], "sources": [self.source], "functions": self.functions, "scopes": self.scopes,
            "frames": self.frames, "locations": self.locations, "spans": self.spans, "names": self.names,
            "types": self.types, "ops": self.ops, "inputs": self.inputs, "parameters": self.parameters,
            "results": results, "observations": self.observations, "regions": self.regions, "findings": self.findings,
            "liveness": {
                "steps": steps, "bytes": planned, "peak_bytes": max(planned, default=0),
                "peak_step": planned.index(max(planned)) if planned else 0, "recorded_bytes": recorded,
                "recorded_peak_bytes": max(recorded, default=0),
                "recorded_peak_step": recorded.index(max(recorded)) if recorded else 0,
            },
            "totals": {
                "recorded": {"flops": number(15552, "flop", "counted"), "seconds": number(2.1e-4, "second")},
                "planned": {"flops": number(15552, "flop", "counted"), "seconds": number(9.6e-5, "second")},
            },
            "counts": {**counts, "ops": count, "opaque": 0},
        }  # fmt: skip

    def _bytes(self, row: int) -> int:
        dtype, _, shape = self.types[row].partition("[")
        return WIDTHS[dtype] * prod(int(d) for d in shape.rstrip("]").split(",") if d)


def cost(before: float, after: float, moved_before: int, moved_after: int, **extra: Any) -> dict[str, Any]:
    figures = {
        "seconds_before": number(before, "second"), "seconds_after": number(after, "second"),
        "bytes_before": number(moved_before, "byte", "counted"), "bytes_after": number(moved_after, "byte", "counted"),
        "flops": number(2 * moved_before, "flop", "counted"), "calls_saved": number(4, "call", "counted"),
        "benefit": number(before - after, "second"),
    }  # fmt: skip
    return {**figures, **extra}


def remedies(
    row: int, name: str, free: int, price: float, beside: float, guarded: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """What ends a block by one observation, as a plan tells it."""

    def remedy(
        kind: str, text: str, delta: float, edits: list[dict[str, Any]] | None = None, **asks: list[int]
    ) -> dict[str, Any]:
        whole = {"ignore": [], "beside": [], "observe": [], "unobserve": [], **asks}
        return {"id": kind, "text": text, "delta": number(delta, "second"), "asks": whole, "edits": edits or []}

    return [
        remedy("stop", f"stop observing `{name}`", -price, ignore=[row]),
        remedy("move", f"observe %{free} instead", -price, ignore=[row], observe=[free]),
        remedy("beside", f"keep observing `{name}` and recompute it on the side", beside - price, beside=[row]),
        remedy("debug", f"observe `{name}` only in debug runs", -price, guarded, ignore=[row]),
    ]


CONVOLUTION = """\
import numpy as np
import topos_core as tp
from topos_core import nn


@tp.model(image=tp.f32[1, 1, 6, 6], weight=tp.f32[2, 1, 3, 3], bias=tp.f32[2])
def main(image, weight, bias):
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(2, 3))
    tp.observe(windows, "windows")
    product = np.einsum("bchwij,ocij->bohw", windows, weight)
    hidden = nn.relu(product + bias[:, None, None])
    return nn.max_pool(hidden, 2)
"""


def convolution(*, observed: bool) -> Document:
    """The seed's example; with `observed` its windows are read, which blocks the convolution."""
    name = "hidden_observed" if observed else "main"
    source = CONVOLUTION if observed else CONVOLUTION.replace('    tp.observe(windows, "windows")\n', "    # windows\n")
    b = Builder("examples/convolution.py", source, f"examples/convolution.py:{name}")
    head = (7, "main(image, weight, bias)")
    image = b.op("input", [], "f32[1,1,6,6]", head, "image")
    weight = b.op("input", [], "f32[2,1,3,3]", head, "weight")
    bias = b.op("input", [], "f32[2]", head, "bias")
    view = (8, "np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(2, 3))")
    windows = b.op("unfold", [image], "f32[1,1,4,4,3,3]", view, "axis=2,3 size=3,3 step=1,1")
    product = (10, 'np.einsum("bchwij,ocij->bohw", windows, weight)')
    left = b.op("permute", [windows], "f32[1,4,4,1,3,3]", product, "axes=0,2,3,1,4,5")
    left = b.op("reshape", [left], "f32[16,9]", product, "shape=16,9")
    right = b.op("reshape", [weight], "f32[2,9]", product, "shape=2,9")
    right = b.op("permute", [right], "f32[9,2]", product, "axes=1,0")
    matmul = b.op("matmul", [left, right], "f32[16,2]", product, "accumulate=f32")
    folded = b.op("reshape", [matmul], "f32[1,4,4,2]", product, "shape=1,4,4,2")
    conv = b.op("permute", [folded], "f32[1,2,4,4]", product, "axes=0,3,1,2")
    index = (11, "bias[:, None, None]")
    shift = b.op("reshape", [bias], "f32[2,1,1]", index, "shape=2,1,1")
    add = (11, "product + bias[:, None, None]")
    shift = b.op("broadcast", [shift], "f32[1,2,4,4]", add, "shape=1,2,4,4")
    summed = b.op("add", [conv, shift], "f32[1,2,4,4]", add)
    relu = (11, "nn.relu(product + bias[:, None, None])")
    zero = b.op("constant", [], "f32[1,2,4,4]", relu, "value=0.0")
    hidden = b.op("maximum", [summed, zero], "f32[1,2,4,4]", relu)
    pool = (12, "nn.max_pool(hidden, 2)")
    blocks = b.op("unfold", [hidden], "f32[1,2,2,2,2,2]", pool, "axis=2,3 size=2,2 step=2,2")
    result = b.op("max", [blocks], "f32[1,2,2,2]", pool, "axes=4,5")
    b.observe(result, "output", (12, "return nn.max_pool(hidden, 2)"), None, pool)
    nodes = [windows, left - 1, left, right - 1, right, matmul, folded, conv]
    other = {"stablehlo": {"verdict": "taken", "code": None, "reason": "becomes stablehlo.convolution"}}
    figures = cost(4.12e-6, 9.65e-7, 5184, 1216, price=number(3.155e-6, "second"))
    if observed:
        at = (9, 'tp.observe(windows, "windows")')
        row = b.observe(windows, "observe", at, "windows", view)
        b.region(
            "convolution", "blocked", nodes, [product, view], root=conv, computing=[matmul], code="TP101",
            word="observed", observations=[row], paths=[[windows]], nearest_free=conv, cost=figures,
            bindings={"x": image, "kernel": weight}, facts={"window": "3x3", "stride": "1x1", "pad": "0,0"},
            headline="convolution 3x3, 1 -> 2 channels: blocked",
            reason="blocked: windows is read by tp.observe, and one convolution never computes it",
            details=["the value is inside this convolution; observing it keeps 5 recorded ops",
                     "observing the convolution's result instead costs nothing"],
            action="observe the result at line 10 instead", others=other,
            fixes=remedies(row, "windows", conv, 3.155e-6, 6.2e-7, [
                {"path": b.path, "line": 9, "column": 0, "end_line": 10, "end_column": 0,
                 "text": '    if __debug__:\n        tp.observe(windows, "windows")\n'}]),
        )  # fmt: skip
        b.findings.append(
            {"code": "TP101", "severity": "information", "verdict": "blocked", "pattern": "convolution",
             "region": f"convolution@{conv}", "headline": "convolution 3x3 is blocked by tp.observe", "details": [],
             **b.place(at), "related": [{"message": "the value is made here", **b.place(view)}],
             "fingerprint": "3f9c", "fix": {"title": "stop observing windows", "edits": [
                 {"path": b.path, "line": 9, "column": 0, "end_line": 10, "end_column": 0, "text": ""}]}}
        )  # fmt: skip
    else:
        b.region(
            "conv_bn_activation", "taken", [*nodes, shift - 1, shift, summed, zero, hidden], [relu, product, view],
            root=hidden, computing=[matmul, summed, hidden], kernel="direct convolution, 8x48 tile", cost=figures,
            bindings={"x": image, "kernel": weight, "bias": bias}, facts={"window": "3x3", "activation": "relu"},
            headline="convolution 3x3 + bias + relu: taken",
            reason="taken: one kernel instead of 11 calls",
            envelope={"relative": 2e-6, "absolute": 1e-6, "probe": "convolution/7"}, others=other,
        )  # fmt: skip
    b.region(
        "window_reduce", "taken", [blocks, result], [pool], root=result, computing=[result], kernel="window max",
        cost=cost(8.1e-7, 4.2e-7, 640, 160), bindings={"x": hidden}, headline="max-pool 2x2: taken",
        reason="taken: one kernel instead of 2 calls", facts={"reduction": "max", "window": "2x2"},
        envelope={"relative": 0.0, "absolute": 0.0, "probe": "window_reduce/7"},
    )  # fmt: skip
    document = b.document([result])
    if observed:
        planned = document["totals"]["planned"]["seconds"]["value"]
        document["totals"]["unobserved"] = {"seconds": number(planned - 3.155e-6, "second")}
    return document


NORMS = """\
import numpy as np


def normalise(x, scale, shift):
    mean = x.mean(axis=(0, 2, 3), keepdims=True)
    centred = x - mean
    variance = (centred * centred).sum(axis=(0, 2, 3), keepdims=True) / (x.size // x.shape[1] - 1)
    return centred / np.sqrt(variance + 1e-5) * scale + shift


def block(x, scale, shift):
    y = normalise(x, scale, shift)
    y = np.maximum(y, 0)
    z = np.tanh(x)
    return y * z + x
"""


def norms() -> Document:
    """A near miss (divisor n-1), a decline by cost, an overlap that lost, and a taken chain."""
    b = Builder("models/norms.py", NORMS, "models/norms.py:block")
    big, small = "f32[8,64,56,56]", "f32[1,64,1,1]"
    head = (11, "block(x, scale, shift)")
    x = b.op("input", [], big, head, "x", function="block")
    scale = b.op("input", [], small, head, "scale", function="block")
    shift = b.op("input", [], small, head, "shift", function="block")
    outer = ((12, "normalise(x, scale, shift)"), "block")

    def inner(name: str, operands: list[int], type_: str, at: tuple[int, str], attributes: str = "") -> int:
        return b.op(name, operands, type_, at, attributes, calls=[(at, "normalise"), outer])

    mean_at, centre_at = (5, "x.mean(axis=(0, 2, 3), keepdims=True)"), (6, "x - mean")
    total = inner("sum", [x], small, mean_at, "axes=0,2,3 accumulate=f32")
    count = inner("constant", [], small, mean_at, "value=25088.0")
    mean = inner("div", [total, count], small, mean_at)
    wide = inner("broadcast", [mean], big, centre_at)
    centred = inner("sub", [x, wide], big, centre_at)
    square_at = (7, "centred * centred")
    square = inner("mul", [centred, centred], big, square_at)
    var_at = (7, "(centred * centred).sum(axis=(0, 2, 3), keepdims=True) / (x.size // x.shape[1] - 1)")
    summed = inner("sum", [square], small, var_at, "axes=0,2,3 accumulate=f32")
    less = inner("constant", [], small, var_at, "value=25087.0")
    variance = inner("div", [summed, less], small, var_at)
    root_at = (8, "np.sqrt(variance + 1e-5)")
    eps = inner("constant", [], small, (8, "variance + 1e-5"), "value=1e-05")
    padded = inner("add", [variance, eps], small, (8, "variance + 1e-5"))
    deviation = inner("sqrt", [padded], small, root_at)
    ratio_at = (8, "centred / np.sqrt(variance + 1e-5)")
    divisor = inner("broadcast", [deviation], big, ratio_at)
    ratio = inner("div", [centred, divisor], big, ratio_at)
    scaled_at = (8, "centred / np.sqrt(variance + 1e-5) * scale")
    wide_scale = inner("broadcast", [scale], big, scaled_at)
    scaled = inner("mul", [ratio, wide_scale], big, scaled_at)
    shifted_at = (8, "centred / np.sqrt(variance + 1e-5) * scale + shift")
    wide_shift = inner("broadcast", [shift], big, shifted_at)
    shifted = inner("add", [scaled, wide_shift], big, shifted_at)
    relu_at = (13, "np.maximum(y, 0)")
    zero = b.op("constant", [], big, relu_at, "value=0.0", function="block")
    relu = b.op("maximum", [shifted, zero], big, relu_at, function="block")
    tanh_at = (14, "np.tanh(x)")
    tanh = b.op("tanh", [x], big, tanh_at, function="block")
    product = b.op("mul", [relu, tanh], big, (15, "y * z"), function="block")
    result = b.op("add", [product, x], big, (15, "y * z + x"), function="block")
    b.observe(result, "output", (15, "return y * z + x"), None, (15, "y * z + x"))
    b.region(
        "batch_norm_training", "near_miss", [shifted], [shifted_at], root=shifted, computing=[], code="TP201",
        headline="batch norm (training): near miss", reason="the variance divides by n - 1, batch norm divides by n",
        near_miss={"at": variance, "code": "divisor", "expected": "25088 (n)", "found": "25087 (n - 1)",
                   "steps_held": 7, "steps": 9, "span": b.place(var_at)},
        action="divide by x.size // x.shape[1]",
    )  # fmt: skip
    winner = b.region(
        "elementwise_chain", "taken", [divisor, ratio, wide_scale, scaled, wide_shift, shifted, zero, relu],
        [relu_at, shifted_at, scaled_at, ratio_at], root=relu, computing=[ratio, scaled, shifted, relu],
        kernel="generated loop nest", cost=cost(6.12e-5, 2.63e-5, 38535168, 12845056),
        headline="4 elementwise ops in one pass: taken", reason="taken: one loop nest instead of 8 recorded ops",
    )  # fmt: skip
    b.region(
        "reduction_elementwise", "declined", [square, summed, less, variance, eps, padded, deviation],
        [root_at, var_at, square_at], root=deviation, computing=[square, summed, variance, padded, deviation],
        code="TP202", word="cost", headline="sum of squares into its square root: declined",
        reason="declined: one kernel would be 0.3 us slower than 5 recorded ops on the reference machine",
        cost=cost(3.01e-5, 3.04e-5, 12845312, 12845312, benefit=number(-3e-7, "second")),
        flips_if={
            "text": "flips if its kernel took less than 3.7 us to start, now 4 us (modelled, reference)", "of": "start",
            "now": number(4e-6, "second"), "at": number(3.7e-6, "second"),
        },
        details=["the sum already reads its operand once; only 64 values remain to fuse"],
    )  # fmt: skip
    b.region(
        "elementwise_chain", "declined", [zero, relu, tanh, product, result],
        [(15, "y * z + x"), relu_at, tanh_at], root=result, computing=[relu, tanh, product, result], code="TP204",
        word="covered-by", winner=winner, headline="4 elementwise ops in one pass: declined",
        reason="declined: elementwise_chain at line 13 covers maximum and saves more",
        cost=cost(4.4e-5, 2.93e-5, 51380224, 25690112),
    )  # fmt: skip
    return b.document([result])


DECODER = """\
class Layer:
    def __call__(self, x, mask):
        h = self.norm1(x)
        q, k, v = h @ self.wq, h @ self.wk, h @ self.wv
        weights = softmax(q @ k.T * self.scale + mask)
        x = x + (weights @ v) @ self.wo
        h = self.norm2(x)
        return x + (silu(h @ self.w1) * (h @ self.w3)) @ self.w2


def decode(x, mask):
    for layer in layers:
        x = layer(x, mask)
    return x
"""

# one layer: (op, operands, shape, line, text, scope tail); operands name earlier rows, "x" the residual, "w" a weight
LAYER: list[tuple[str, list[str], str, int, str, str, str]] = [
    ("square", ["x", "x"], "x", 3, "self.norm1(x)", "norm1", "mul"),
    ("total", ["square"], "n", 3, "self.norm1(x)", "norm1", "sum"),
    ("count", [], "n", 3, "self.norm1(x)", "norm1", "constant"),
    ("mean", ["total", "count"], "n", 3, "self.norm1(x)", "norm1", "div"),
    ("inverse", ["mean"], "n", 3, "self.norm1(x)", "norm1", "rsqrt"),
    ("wide", ["inverse"], "x", 3, "self.norm1(x)", "norm1", "broadcast"),
    ("normed", ["x", "wide"], "x", 3, "self.norm1(x)", "norm1", "mul"),
    ("wq", [], "w", 4, "h @ self.wq", "attention", "parameter"),
    ("q", ["normed", "wq"], "x", 4, "h @ self.wq", "attention", "matmul"),
    ("wk", [], "w", 4, "h @ self.wk", "attention", "parameter"),
    ("k", ["normed", "wk"], "x", 4, "h @ self.wk", "attention", "matmul"),
    ("wv", [], "w", 4, "h @ self.wv", "attention", "parameter"),
    ("v", ["normed", "wv"], "x", 4, "h @ self.wv", "attention", "matmul"),
    ("kt", ["k"], "x", 5, "k.T", "attention", "permute"),
    ("scores", ["q", "kt"], "s", 5, "q @ k.T", "attention", "matmul"),
    ("scale", [], "s", 5, "q @ k.T * self.scale", "attention", "constant"),
    ("scaled", ["scores", "scale"], "s", 5, "q @ k.T * self.scale", "attention", "mul"),
    ("masked", ["scaled", "mask"], "s", 5, "q @ k.T * self.scale + mask", "attention", "add"),
    ("top", ["masked"], "r", 5, "softmax(q @ k.T * self.scale + mask)", "attention", "max"),
    ("topw", ["top"], "s", 5, "softmax(q @ k.T * self.scale + mask)", "attention", "broadcast"),
    ("less", ["masked", "topw"], "s", 5, "softmax(q @ k.T * self.scale + mask)", "attention", "sub"),
    ("exp", ["less"], "s", 5, "softmax(q @ k.T * self.scale + mask)", "attention", "exp"),
    ("sum", ["exp"], "r", 5, "softmax(q @ k.T * self.scale + mask)", "attention", "sum"),
    ("sumw", ["sum"], "s", 5, "softmax(q @ k.T * self.scale + mask)", "attention", "broadcast"),
    ("weights", ["exp", "sumw"], "s", 5, "softmax(q @ k.T * self.scale + mask)", "attention", "div"),
    ("mixed", ["weights", "v"], "x", 6, "weights @ v", "attention", "matmul"),
    ("wo", [], "w", 6, "(weights @ v) @ self.wo", "attention", "parameter"),
    ("out", ["mixed", "wo"], "x", 6, "(weights @ v) @ self.wo", "attention", "matmul"),
    ("x1", ["x", "out"], "x", 6, "x + (weights @ v) @ self.wo", "", "add"),
    ("square2", ["x1", "x1"], "x", 7, "self.norm2(x)", "norm2", "mul"),
    ("total2", ["square2"], "n", 7, "self.norm2(x)", "norm2", "sum"),
    ("count2", [], "n", 7, "self.norm2(x)", "norm2", "constant"),
    ("mean2", ["total2", "count2"], "n", 7, "self.norm2(x)", "norm2", "div"),
    ("inverse2", ["mean2"], "n", 7, "self.norm2(x)", "norm2", "rsqrt"),
    ("wide2", ["inverse2"], "x", 7, "self.norm2(x)", "norm2", "broadcast"),
    ("normed2", ["x1", "wide2"], "x", 7, "self.norm2(x)", "norm2", "mul"),
    ("w1", [], "w", 8, "h @ self.w1", "mlp", "parameter"),
    ("gate", ["normed2", "w1"], "x", 8, "h @ self.w1", "mlp", "matmul"),
    ("minus", ["gate"], "x", 8, "silu(h @ self.w1)", "mlp", "neg"),
    ("expm", ["minus"], "x", 8, "silu(h @ self.w1)", "mlp", "exp"),
    ("one", [], "x", 8, "silu(h @ self.w1)", "mlp", "constant"),
    ("denominator", ["expm", "one"], "x", 8, "silu(h @ self.w1)", "mlp", "add"),
    ("silu", ["gate", "denominator"], "x", 8, "silu(h @ self.w1)", "mlp", "div"),
    ("w3", [], "w", 8, "h @ self.w3", "mlp", "parameter"),
    ("up", ["normed2", "w3"], "x", 8, "h @ self.w3", "mlp", "matmul"),
    ("gated", ["silu", "up"], "x", 8, "silu(h @ self.w1) * (h @ self.w3)", "mlp", "mul"),
    ("w2", [], "w", 8, "(silu(h @ self.w1) * (h @ self.w3)) @ self.w2", "mlp", "parameter"),
    ("down", ["gated", "w2"], "x", 8, "(silu(h @ self.w1) * (h @ self.w3)) @ self.w2", "mlp", "matmul"),
    ("x", ["x1", "down"], "x", 8, "x + (silu(h @ self.w1) * (h @ self.w3)) @ self.w2", "", "add"),
]  # fmt: skip
SHAPES = {"x": "f32[128,512]", "w": "f32[512,512]", "n": "f32[128,1]", "s": "f32[128,128]", "r": "f32[128,1]"}


def decoder(ops: int, *, seed: int = 0, scoped: bool = True) -> Document:
    """A transformer decoder of about `ops` ops in identical layers, one of them odd (an observed value blocks it)."""
    random.seed(seed)
    b = Builder("models/decoder.py", DECODER, "models/decoder.py:decode")
    head = (11, "decode(x, mask)")
    x = b.op("input", [], SHAPES["x"], head, "x", function="decode")
    mask = b.op("input", [], SHAPES["s"], head, "mask", function="decode")
    layers = max(1, round((ops - 2) / len(LAYER)))
    odd = layers // 3
    for layer in range(layers):
        values = {"x": x, "mask": mask}
        for name, operands, shape, line, text, tail, op in LAYER:
            scope = ["layers", f"layer{layer}", *([tail] if tail else [])] if scoped else []
            attributes = {"constant": "value=0.125", "parameter": f"layer{layer}.{name}"}.get(op, "")
            calls = [((line, text), "Layer.__call__"), ((13, "layer(x, mask)"), "decode")]
            values[name] = b.op(
                op, [values[o] for o in operands], SHAPES[shape], (line, text), attributes, scope=scope, calls=calls
            )
        scope = ["layers", f"layer{layer}"] if scoped else []
        _layer_regions(b, values, scope, odd=layer == odd)
        x = values["x"]
    b.observe(x, "output", (14, "return x"), None, (13, "layer(x, mask)"))
    return b.document([x])


def _layer_regions(b: Builder, v: dict[str, int], scope: list[str], *, odd: bool) -> None:
    norm = [v[n] for n in ("square", "total", "count", "mean", "inverse", "wide", "normed")]
    norm2 = [v[n] for n in ("square2", "total2", "count2", "mean2", "inverse2", "wide2", "normed2")]
    attention = [v[n] for n in ("kt", "scores", "scale", "scaled", "masked", "top", "topw", "less", "exp", "sum", "sumw",
                                "weights", "mixed")]  # fmt: skip
    text = "softmax(q @ k.T * self.scale + mask)"
    tail = [*scope, "norm1"] if scope else []
    b.region("rms_norm", "taken", norm, [(3, "self.norm1(x)")], scope=tail, kernel="row norm", fingerprint="aa01",
             cost=cost(3.1e-5, 1.2e-5, 786432, 524288), headline="rms norm over 512: taken",
             reason="taken: one kernel instead of 7 calls")  # fmt: skip
    tail = [*scope, "attention"] if scope else []
    if odd:
        row = b.observe(v["weights"], "observe", (5, "weights"), "weights", (5, text))
        b.region("attention", "blocked", attention, [(6, "weights @ v"), (5, text)], scope=tail, fingerprint="aa02",
                 code="TP101", word="observed", observations=[row], paths=[[v["weights"]]], nearest_free=v["mixed"],
                 cost=cost(2.4e-4, 9e-5, 1310720, 786432, price=number(1.5e-4, "second")),
                 headline="attention, 128 queries over 128 keys: blocked",
                 reason="blocked: weights is read by tp.observe, and fused attention never stores it",
                 fixes=remedies(row, "weights", v["mixed"], 1.5e-4, 6.1e-5, []),
                 action="observe the mixed values instead")  # fmt: skip
    else:
        b.region("attention", "taken", attention, [(6, "weights @ v"), (5, text)], scope=tail, fingerprint="aa02",
                 kernel="tiled attention", cost=cost(2.4e-4, 9e-5, 1310720, 786432),
                 headline="attention, 128 queries over 128 keys: taken",
                 reason="taken: one kernel instead of 13 calls")  # fmt: skip
    tail = [*scope, "norm2"] if scope else []
    b.region("rms_norm", "taken", norm2, [(7, "self.norm2(x)")], scope=tail, kernel="row norm", fingerprint="aa01",
             cost=cost(3.1e-5, 1.2e-5, 786432, 524288), headline="rms norm over 512: taken",
             reason="taken: one kernel instead of 7 calls")  # fmt: skip
    tail = [*scope, "mlp"] if scope else []
    mlp = [v[n] for n in ("gate", "minus", "expm", "one", "denominator", "silu", "up", "gated")]
    b.region("gated_mlp", "declined", mlp, [(8, "silu(h @ self.w1) * (h @ self.w3)")], scope=tail, fingerprint="aa03",
             code="TP202", word="cost", cost=cost(4e-4, 4.2e-4, 2097152, 1572864, benefit=number(-2e-5, "second")),
             headline="gated mlp 512 -> 512: declined",
             reason="declined: one kernel would be 20 us slower than 8 recorded ops on the reference machine")  # fmt: skip


MARKUP = "<script>globalThis.pwned = 1</script><img src=x onerror='globalThis.pwned=1'>"


def hostile(tag: str = MARKUP) -> Document:
    """A model whose op names, scopes, sources, sentences and target hold a text, markup for one; every piece must show as text."""
    b = Builder("models/<b>x.py", f"def main(x):\n    return x  # {tag}\n", "models/<b>x.py:main")
    x = b.op("input", [], "f32[2]", (1, "main(x)"), tag, scope=[tag])
    y = b.op(tag, [x], "f32[2]", (2, "x"), tag, scope=[tag])
    b.observe(y, "observe", (2, "return x"), tag, (2, "x"))
    b.region(
        "convolution", "blocked", [y], [(2, "return x")], headline=tag, reason=tag, details=[tag], action=tag,
        facts={tag: tag}, observations=[0], paths=[[y]], nearest_free=y, code="TP101", word="observed",
        others={tag: {"verdict": "taken", "code": None, "reason": tag}}, scope=[tag], fixes=remedies(0, tag, y, 1e-6, 1e-6, []),
    )  # fmt: skip
    return b.document([y])


def measured(document: Document) -> Document:
    """A profile as `topos bench` writes it: every taken region, and every op that reads something."""

    def seconds(value: float) -> dict[str, Any]:
        return {"value": value, "unit": "second", "basis": "measured"}

    def figure(contender: str, median: float) -> dict[str, Any]:
        spread = {"minimum": median * 0.9, "lower": median * 0.95, "median": median, "upper": median * 1.1}
        return {
            "contender": contender, "threads": 1, "clock": "cpu", "runs": 40, "rounds": 3, "first_seconds": 0.5, "error": None,
            "failure": None, "seconds": {**spread, "unit": "second", "basis": "measured"},
        }  # fmt: skip

    absent = {**figure("torch", 1.0), "seconds": None, "failure": "torch has no <script> op"}
    taken = [region for region in document["regions"] if region["verdict"] == "taken"]
    inside = {value for region in taken for value in region["computing"]}
    computing = [value for value, operands in enumerate(document["ops"]["operands"]) if operands]
    steps = [{"value": region["root"], "region": region["id"], "seconds": seconds(3e-5)} for region in taken]
    steps += [{"value": v, "region": None, "seconds": seconds(1e-5)} for v in computing if v not in inside]
    return {
        "schema": "topos.bench/1", "target": document["target"], "digest": document["digest"], "consumer": "home",
        "fidelity": document["fidelity"], "machine": "host", "cost": "model", "inputs": "seed 0",
        "host": {"processor": "Test <CPU>", "processors": 2, "load": 0.25},
        "settings": {"threads": [1], "rounds": 3, "seconds": 0.3}, "contenders": [], "model": [figure("home", 2e-4), absent],
        "regions": [
            {
                **{name: region[name] for name in ("id", "key", "fingerprint", "pattern", "verdict", "scope", "path", "line", "column")},
                "end_line": region["end_line"], "end_column": region["end_column"], "alike": [],
                "seconds": seconds(3e-5) if region["verdict"] == "taken" else None, "recorded_seconds": seconds(9e-5),
                "figures": [figure("interpreter", 8e-5), figure("home", 2.5e-5), absent] if region["verdict"] == "taken" else [],
            }
            for region in document["regions"] if region["verdict"] != "near_miss"
        ],
        "profile": {
            "runs": 5, "threads": 1, "clock": "cpu", "steps": sorted(steps, key=lambda row: row["value"]),
            "recorded": [{"value": value, "seconds": seconds(2e-5)} for value in computing],
        },
    }  # fmt: skip
