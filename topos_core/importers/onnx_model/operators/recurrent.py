"""Recurrent layers, step after step: sequences of a fixed length, unrolled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from topos_core import nn
from topos_core.importers.onnx_model.node import Node, Translate, Unsupported
from topos_core.recording import constant, joining
from topos_core.recording.value import Value

_LONGEST: Final = 1024
_ACTIVATIONS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "tanh": nn.tanh, "sigmoid": nn.sigmoid, "relu": nn.relu, "softsign": lambda x: x / (1 + abs(x)),
    "softplus": nn.softplus,
}  # fmt: skip
Cell = Callable[[Node, int, list[Callable[[Any], Any]], Value, list[Value]], list[Value]]


def _layer(gates: int, states: int, defaults: tuple[str, ...], cell: Cell) -> Translate:
    def translate(node: Node) -> Any:
        _check(node)
        x = node.x().transpose(1, 0, 2) if node.attribute("layout", 0) else node.x()
        direction = node.attribute("direction", "forward")
        count = 2 if direction == "bidirectional" else 1
        length, batch = x.shape[0], x.shape[1]
        hidden = node.x(2).shape[2]
        if length * count > _LONGEST:
            raise Unsupported(f"it runs {length * count} steps, topos unrolls {_LONGEST}")
        names = [each.lower() for each in node.attribute("activations") or defaults * count]
        if any(name not in _ACTIVATIONS for name in names):
            raise Unsupported(f"its activations are {', '.join(names)}")
        every, ends = [], []
        for at in range(count):
            mine = [_ACTIVATIONS[name] for name in names[at * len(defaults) : (at + 1) * len(defaults)]]
            held = [_initial(node, 5 + state, at, batch, hidden, x.type.dtype) for state in range(states)]
            backwards = direction == "reverse" or at == 1
            steps: list[Value] = []
            for step in reversed(range(length)) if backwards else range(length):
                held = cell(node, at, mine, x[step], held)
                steps.append(held[0])
            every.append(joining.stack(steps[::-1] if backwards else steps, 0))
            ends.append(held)
        y = joining.stack(every, 1)
        last = [joining.stack([held[state] for held in ends], 0) for state in range(states)]
        if node.attribute("layout", 0):
            y, last = y.transpose(2, 0, 1, 3), [each.transpose(1, 0, 2) for each in last]
        return [y, *last][: len(node.outputs)]

    return translate


def _check(node: Node) -> None:
    if node.attribute("clip") or node.attribute("input_forget"):
        raise Unsupported("it clips, or couples its gates")
    if node.has(4):
        lengths = node.known(4, "sequence lengths")
        steps = node.x().shape[1 if node.attribute("layout", 0) else 0]
        if (lengths != steps).any():
            raise Unsupported("its sequences have lengths of their own")


def _initial(node: Node, at: int, direction: int, batch: int, hidden: int, dtype: str) -> Value:
    if not node.has(at):
        return constant.splat(node.recorder, 0, dtype, (batch, hidden))
    given = node.x(at)
    return given[:, direction] if node.attribute("layout", 0) else given[direction]


def _parts(node: Node, at: int, direction: int, gates: int) -> list[Value]:
    """Splits W, R or one half of B by gate."""
    return joining.split(node.x(at)[direction], gates, 0)


def _biases(node: Node, direction: int, gates: int) -> tuple[list[Any], list[Any]]:
    if not node.has(3):
        return [0.0] * gates, [0.0] * gates
    parts = joining.split(node.x(3)[direction], 2 * gates, 0)
    return parts[:gates], parts[gates:]


def _plus(x: Any, bias: Any) -> Any:
    return x if isinstance(bias, float) else x + bias


def _plain(
    node: Node, direction: int, functions: list[Callable[[Any], Any]], x: Value, held: list[Value]
) -> list[Value]:
    (w,), (r,) = (_parts(node, at, direction, 1) for at in (1, 2))
    (wb,), (rb,) = _biases(node, direction, 1)
    return [functions[0](_plus(_plus(x @ w.T + held[0] @ r.T, wb), rb))]


def _lstm(
    node: Node, direction: int, functions: list[Callable[[Any], Any]], x: Value, held: list[Value]
) -> list[Value]:
    h, c = held
    w, r = (_parts(node, at, direction, 4) for at in (1, 2))
    wb, rb = _biases(node, direction, 4)
    peeps = joining.split(node.x(7)[direction], 3, 0) if node.has(7) else None
    sums = [_plus(_plus(x @ w[at].T + h @ r[at].T, wb[at]), rb[at]) for at in range(4)]
    if peeps is not None:
        sums[0], sums[2] = sums[0] + peeps[0] * c, sums[2] + peeps[2] * c
    f, g, out = functions
    cell = f(sums[2]) * c + f(sums[0]) * g(sums[3])
    gate = sums[1] if peeps is None else sums[1] + peeps[1] * cell
    return [f(gate) * out(cell), cell]


def _gru(node: Node, direction: int, functions: list[Callable[[Any], Any]], x: Value, held: list[Value]) -> list[Value]:
    (h,) = held
    w, r = (_parts(node, at, direction, 3) for at in (1, 2))
    wb, rb = _biases(node, direction, 3)
    f, g = functions
    update, reset = (f(_plus(_plus(x @ w[at].T + h @ r[at].T, wb[at]), rb[at])) for at in range(2))
    if node.attribute("linear_before_reset", 0):
        new = g(_plus(x @ w[2].T, wb[2]) + reset * _plus(h @ r[2].T, rb[2]))
    else:
        new = g(_plus(_plus(x @ w[2].T + (reset * h) @ r[2].T, wb[2]), rb[2]))
    return [(1 - update) * new + update * h]


OPERATORS: Final[Mapping[str, Translate]] = {
    "RNN": _layer(1, 1, ("tanh",), _plain), "LSTM": _layer(4, 2, ("sigmoid", "tanh", "tanh"), _lstm),
    "GRU": _layer(3, 1, ("sigmoid", "tanh"), _gru),
}  # fmt: skip
