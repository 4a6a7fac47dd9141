"""Every ATen op that has a formula gives what torch gives."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.importers.torch.check import check, imported, normals, opaque, torch

F, nn = torch.nn.functional, torch.nn

IMAGE = normals(2, 8, 12, 12)
ROWS = normals(3, 4)
WHOLE = torch.arange(12).reshape(3, 4) - 5
POSITIVE = WHOLE.abs() + 1
MASK = WHOLE > 0
PLAIN = "relu relu6 gelu silu sigmoid tanh elu selu celu mish softplus hardswish hardsigmoid hardtanh leaky_relu logsigmoid softsign"
UNARY = "abs neg exp expm1 sin cos erf floor ceil round sign square trunc reciprocal isnan isfinite exp2"
ROOTS = "log log1p log2 log10 sqrt rsqrt"


def each(names: str, home: Any) -> Any:
    return lambda x: [getattr(home, name)(x) for name in names.split()]


def arithmetic(a: Any, b: Any) -> list[Any]:
    return [
        a + b, a - b, a * b, a / b, a // b, a % b, a < b, a == b, a >= b, torch.maximum(a, b), torch.add(a, b, alpha=2),
        1 - a, a * 2, a + 1, a * 2.5, 3 / b,
    ]  # fmt: skip


def reduced(dim: Any) -> Any:
    return lambda a: [
        a.sum(dim), a.mean(dim), a.var(dim), a.std(dim, unbiased=False), a.amax(dim), a.logsumexp(dim), a.norm(dim=dim),
        a.mean(dim, keepdim=True),
    ]  # fmt: skip


def changed(a: Any) -> Any:
    """Writes through views, and reads through other views afterwards."""
    a = a * 1
    column, flat = a[:, 1], a.view(-1)
    a[:, 0] = 0
    a[1] += 1
    column.mul_(3)
    flat[2:4].fill_(9)
    a.relu_()
    other = torch.zeros(3, 4)
    other[:2] = a[:2]
    other.t()[0] = 5
    return a, other, column, flat


def changed_in_parts(a: Any) -> Any:
    """Writes through every other column and through parts, and reads the whole and other parts afterwards."""
    a = a * 1
    out = torch.zeros(3, 9)
    out[:, ::2] = torch.cat([a, a[:, :1]], 1)
    out[:, 1::3] = 7
    out[::5].mul_(2)
    left, right = a.chunk(2, 1)
    left.add_(right)
    first, second, third = a.unbind(0)
    second.mul_(third)
    wide, narrow = out.split([6, 3], -1)
    narrow[1:].fill_(4)
    wide[:, 4:1:1] += 1
    return a, out, left, right, first, second, wide, narrow


def half_regions(a: Any) -> Any:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        product = a @ a.T
    with torch.no_grad():
        return product, a @ a.T


FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "activations": (each(PLAIN, F), IMAGE),
    "activations with arguments": (
        lambda x: [F.gelu(x, approximate="tanh"), F.glu(x, 1), F.threshold(x, 0.1, 5.0), F.elu(x, 0.5)], IMAGE,
    ),
    "prelu": (lambda x: F.prelu(x, torch.full((8,), 0.3)), IMAGE),
    "unary": (each(UNARY, torch), ROWS),
    "roots and logarithms": (each(ROOTS, torch), ROWS.abs() + 0.1),
    "powers": (lambda a: [a**3, a**2, a**0.5, a**-0.5, a**-1, 2**a, a**a], ROWS.abs() + 0.1),
    "f32 with f32": (arithmetic, ROWS, ROWS + 3),
    "i64 with i64": (arithmetic, WHOLE, POSITIVE),
    "f32 with i64": (arithmetic, ROWS, POSITIVE),
    "f16 with f32": (arithmetic, ROWS.half(), ROWS + 3),
    "bf16 with bf16": (arithmetic, ROWS.bfloat16(), ROWS.bfloat16() + 3),
    "f32 with a f64 scalar": (arithmetic, ROWS, torch.tensor(2.5, dtype=torch.float64)),
    "i32 with i64": (arithmetic, WHOLE.int(), POSITIVE),
    "rounded divisions": (
        lambda a, b: [torch.div(a, b, rounding_mode="trunc"), torch.div(b, 3, rounding_mode="trunc"), b // 2], ROWS, WHOLE + 20,
    ),
    "limits": (lambda a: [a.clamp(-1, 1), a.clamp(min=0), a.clamp(max=0.5), a.clamp(min=a * 2)], ROWS),
    "selection": (lambda a, m: [torch.where(m, a, 0.0), a.masked_fill(m, -1e9), torch.where(m, a, a * 2)], ROWS, MASK),
    "masks": (lambda a, b: [(a & b) | ~a, a ^ b, torch.logical_and(a, b), a.float(), a + 1, a.sum()], MASK, ~MASK),
    "fused arithmetic": (
        lambda a: [torch.addcmul(a, a, a, value=0.5), torch.addcdiv(a, a, a.abs() + 1, value=2), torch.lerp(a, a * 2, 0.3)], ROWS,
    ),
    "reductions over an axis": (reduced(1), ROWS),
    "reductions over two axes": (reduced((0, 1)), ROWS),
    "integer reductions": (
        lambda a: [a.sum(), a.sum(1), a.prod(), a.max(), a.argmax(), a.argmax(1), a.argmin(0, keepdim=True), a.any(),
                   (a > 0).all(1), a.cumsum(1), torch.count_nonzero(a)], WHOLE,
    ),
    "extremes with places": (lambda a: [*a.max(1), *a.min(0, keepdim=True), torch.var_mean(a, 1)], ROWS),
    "halves": (lambda a: [a.sum(), a.mean(1), torch.softmax(a, -1), F.layer_norm(a, (4,)), F.gelu(a)], ROWS.bfloat16()),
    "softmax": (lambda a: [a.softmax(0), a.log_softmax(-1), torch.softmax(a, 1, dtype=torch.float64)], ROWS),
    "movement": (
        lambda x: [x.view(2, -1), x.permute(0, 2, 3, 1), x.transpose(1, 2), x.flatten(1), x.unsqueeze(0).squeeze(), x[:, 0],
                   x[:, 1:3], x[..., ::2], x[:, None], x.expand(3, 2, 8, 12, 12), x.repeat(2, 1, 1, 1), x.flip(1), x.roll(2, 1),
                   x.roll((1, 2), (2, 3)), x.unflatten(1, (2, 4)), x.movedim(1, -1), x.mT, x.narrow(1, 2, 3), x.select(1, -1),
                   x.tril(), x.triu(1), x.repeat_interleave(3, 1), x.diagonal(0, 2, 3)], IMAGE,
    ),
    "parts": (
        lambda x: [*x.split(3, 1), *x.chunk(3, 1), *x.unbind(0), *x.split([2, 6], 1), torch.cat([x, x], 1),
                   torch.stack([x, x], 1), torch.hstack([x, x])], IMAGE,
    ),
    "paddings": (
        lambda x: [F.pad(x, (1, 2)), F.pad(x, (1, 2, 3, 4), value=2.0), F.pad(x, (-1, 2)),
                   *(F.pad(x, (1, 2, 3, 4), mode=mode) for mode in ("reflect", "replicate", "circular"))], IMAGE,
    ),
    "rearrangements": (
        lambda x: [F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2), F.channel_shuffle(x, 4), x.unfold(2, 3, 2),
                   F.unfold(x, 3, padding=1, stride=2, dilation=1)], IMAGE,
    ),
    "interpolation": (
        lambda x: [F.interpolate(x, scale_factor=2), F.interpolate(x, size=(7, 30)),
                   F.interpolate(x, scale_factor=2, mode="bilinear"),
                   F.interpolate(x, size=(7, 30), mode="bilinear", align_corners=True)], IMAGE,
    ),
    "pooling": (
        lambda x: [F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, 3, 2, ceil_mode=True), F.max_pool2d(x, 2, dilation=2),
                   F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), F.avg_pool2d(x, 2, ceil_mode=True),
                   F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), F.avg_pool2d(x, (4, 3), 3, 1, True, count_include_pad=False),
                   F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (3, 4)), F.adaptive_avg_pool2d(x, (5, 7))], IMAGE,
    ),
    "products": (
        lambda a: [F.linear(a, a), a @ a.T, torch.addmm(a[:, :3], a, a.T, beta=0.5, alpha=2), torch.einsum("ij,kj->ik", a, a),
                   torch.outer(a[0], a[1]), a[0] @ a[1], a @ a[0], torch.bmm(a[None], a.T[None])], ROWS,
    ),
    "attention": (
        lambda q, k: [F.scaled_dot_product_attention(q, q, q), F.scaled_dot_product_attention(q, q, q, is_causal=True, scale=0.3),
                      F.scaled_dot_product_attention(q, k, k, enable_gqa=True),
                      F.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(6, 6).tril().bool())],
        normals(2, 4, 6, 8), normals(2, 2, 5, 8),
    ),
    "attention where a row of the mask hides every key": (
        lambda q, seen: [F.scaled_dot_product_attention(q, q, q, attn_mask=seen),
                         F.scaled_dot_product_attention(q, q, q, attn_mask=torch.where(seen, 0.5, -torch.inf))],
        normals(2, 4, 6, 8), torch.ones(2, 1, 6, 6).tril(-1).bool(),
    ),
    "lookups": (
        lambda a, i: [a[i], a[:, i], a[i, i], a.index_select(1, i), a.gather(1, i[None].expand(3, -1)), F.one_hot(i, 5),
                      a[torch.tensor([0, 2])], torch.diff(a, dim=0), F.embedding(i, a), torch.zeros(4, 4).index_add(0, i, a)],
        ROWS, torch.tensor([0, 1, 2]),
    ),
    "creation": (
        lambda a: [torch.arange(5) + a.size(0), torch.arange(2, 9, 2, dtype=torch.float32), torch.zeros_like(a), a.new_ones(3),
                   torch.full((2, 2), 3.0), torch.linspace(0, 1, 5), torch.arange(100) * 1.0, torch.eye(3)], ROWS,
    ),
    "losses": (lambda a: [F.mse_loss(a, a * 2), F.mse_loss(a, a * 2, reduction="sum")], ROWS),
    "writes through views": (changed, ROWS),
    "writes through parts": (changed_in_parts, ROWS),
    "autocast and no_grad regions": (half_regions, ROWS),
    "nested results": (lambda a: {"a": a + 1, "b": [a, None], "c": (a.sum(),)}, ROWS),
}  # fmt: skip

MODULES: dict[str, tuple[Any, ...]] = {
    "conv1d": (nn.Conv1d(4, 8, 3, padding=1, stride=2, groups=2), normals(2, 4, 9)),
    "conv2d, same": (nn.Conv2d(4, 8, 3, padding="same", dilation=2), normals(2, 4, 9, 9)),
    "conv2d without a batch": (nn.Conv2d(4, 8, 3), normals(4, 9, 9)),
    "conv3d": (nn.Conv3d(4, 8, 3, padding=1, stride=2, groups=2), normals(2, 4, 5, 5, 5)),
    "transposed conv1d": (nn.ConvTranspose1d(4, 8, 3, padding=1, stride=2, output_padding=1), normals(2, 4, 7)),
    "transposed conv2d": (nn.ConvTranspose2d(4, 8, 3, padding=1, stride=2, groups=2), normals(2, 4, 7, 7)),
    "norms": (
        nn.Sequential(nn.BatchNorm2d(8), nn.GroupNorm(2, 8), nn.InstanceNorm2d(8, affine=True), nn.LayerNorm((12, 12)), nn.RMSNorm(12)).eval(),
        IMAGE,
    ),
    "batch norm in training": (nn.BatchNorm2d(8).train(), IMAGE),
    "a normed weight": (nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), ROWS),
    "lstm, two layers, both ways": (nn.LSTM(4, 8, 2, batch_first=True, bidirectional=True), normals(2, 5, 4)),
    "lstm without biases": (nn.LSTM(4, 8, bias=False), normals(5, 2, 4)),
    "gru": (nn.GRU(4, 8, bidirectional=True), normals(5, 2, 4)),
    "rnn": (nn.RNN(4, 8, nonlinearity="relu"), normals(5, 2, 4)),
    "lstm cell": (nn.LSTMCell(4, 8), normals(2, 4)),
    "gru cell": (nn.GRUCell(4, 8), normals(2, 4)),
    "encoder": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), normals(2, 5, 8)),
    "transformer": (nn.Transformer(8, 2, 1, 1, 16, batch_first=True).eval(), normals(2, 5, 8), normals(2, 4, 8)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_gives_what_torch_gives(name: str) -> None:
    function, *tensors = FUNCTIONS[name]
    check(function, *tensors)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_gives_what_torch_gives(name: str) -> None:
    module, *tensors = MODULES[name]
    check(module, *tensors)


def test_a_write_through_memory_that_is_shared_in_an_unknown_way_is_opaque() -> None:
    def function(a: Any) -> Any:
        a = a * 1
        a.diagonal().zero_()
        return a.sum()

    assert [name for name, _ in opaque(imported(function, ROWS))] == ["aten.zero_"]


@pytest.mark.parametrize(
    ("function", "foreign"),
    [
        (lambda a: a.topk(2), ["aten.topk"]),
        (lambda a: a[a > 0].sum(), ["aten.sum"]),
        (lambda a: torch.view_as_real(torch.view_as_complex(a.view(3, 2, 2)) * 2), ["aten.view_as_real"]),
        (lambda a: F.dropout(a, 0.5, training=True) + 1, ["aten.dropout"]),
    ],
)
def test_what_has_no_formula_is_opaque_by_name(function: Any, foreign: list[str]) -> None:
    tape = imported(function, ROWS)
    assert [name for name, _ in opaque(tape)] == foreign
    assert all(operand < value for value, op in enumerate(tape.ops) for operand in op.operands)


def test_norms_of_a_decomposed_module_are_what_torch_computes():
    class Norms(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.batch, self.layer = torch.nn.BatchNorm2d(3), torch.nn.LayerNorm(5)

        def forward(self, x):
            return self.layer(torch.relu(self.batch(x)))

    module = Norms().eval()
    with torch.no_grad():
        module.batch.running_mean.uniform_(-1, 1)
        module.batch.running_var.uniform_(0.5, 2)
    image = torch.rand(2, 3, 4, 5)
    check(torch.export.export(module, (image,)).run_decompositions().module(), image)
