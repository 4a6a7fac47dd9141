"""Recurrent layers, unrolled: one cell a step, up to a number of steps; longer ones stay one opaque op.

torch keeps the gates' weights as [gates * hidden, inputs]: LSTM's in the order input, forget, cell, output, GRU's reset, update, new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from topos_core import nn
from topos_core.importers.torch_export.call import Call, NoFormula, Table

LONGEST: Final = 64  # steps; an unrolled step is about 30 ops

State = tuple[Any, ...]
Step = Callable[[Any, State, Sequence[Any]], State]


def _lstm_step(x: Any, state: State, weights: Sequence[Any]) -> State:
    """Gives (h, c); `x` is the input's share of the gates."""
    h, c = state
    gates = x + nn.linear(h, *weights)
    enter, forget, fresh, leave = np.split(gates, 4, axis=-1)
    c = nn.sigmoid(forget) * c + nn.sigmoid(enter) * np.tanh(fresh)
    return nn.sigmoid(leave) * np.tanh(c), c


def _gru_step(x: Any, state: State, weights: Sequence[Any]) -> State:
    (h,) = state
    reset, update, fresh = np.split(x, 3, axis=-1)
    reset_h, update_h, fresh_h = np.split(nn.linear(h, *weights), 3, axis=-1)
    update = nn.sigmoid(update + update_h)
    fresh = np.tanh(fresh + nn.sigmoid(reset + reset_h) * fresh_h)
    return (fresh + update * (h - fresh),)


def _plain_step(activation: Callable[[Any], Any]) -> Step:
    def step(x: Any, state: State, weights: Sequence[Any]) -> State:
        return (activation(x + nn.linear(state[0], *weights)),)

    return step


def _layer(x: Any, state: State, step: Step, weights: Sequence[Any], *, backwards: bool) -> tuple[Any, State]:
    """Runs one layer in one direction over [steps, batch, features]; gives every h and the last state."""
    input_weights, hidden_weights = weights[0::2], weights[1::2]
    shares = nn.linear(x, *input_weights)
    steps = range(x.shape[0])
    seen: list[Any] = []
    for at in reversed(steps) if backwards else steps:
        state = step(shares[at], state, hidden_weights)
        seen.append(state[0])
    return np.stack(seen[::-1] if backwards else seen), state


def _network(step: Step, states: int) -> Callable[..., Any]:
    def formula(
        call: Call, x: Any, start: Any, weights: Any, biases: bool, layers: int, dropout: float, training: bool,
        bidirectional: bool, batch_first: bool = False,
    ) -> Any:  # fmt: skip
        if isinstance(batch_first, (list, tuple)) or not isinstance(weights, (list, tuple)) or x.ndim != 3:
            raise NoFormula("packed sequences")
        if training and dropout > 0:
            raise NoFormula("a random mask between the layers")
        starts = tuple(start) if isinstance(start, (list, tuple)) else (start,)
        directions, each = 2 if bidirectional else 1, 4 if biases else 2
        if len(weights) != layers * directions * each:
            raise NoFormula("a projection of the state")
        x = x.swapaxes(0, 1) if batch_first else x
        if x.shape[0] > LONGEST:
            raise NoFormula(f"{x.shape[0]} steps; up to {LONGEST} are unrolled")
        last: list[State] = []
        for layer in range(layers):
            outs = []
            for direction in range(directions):
                at = layer * directions + direction
                held = weights[at * each : (at + 1) * each]
                out, state = _layer(x, tuple(s[at] for s in starts), step, held, backwards=direction == 1)
                outs.append(out)
                last.append(state)
            x = np.concatenate(outs, axis=-1) if directions == 2 else outs[0]
        y = x.swapaxes(0, 1) if batch_first else x
        return [y, *(np.stack([state[at] for state in last]) for at in range(states))]

    return formula


def _cell(step: Step, states: int) -> Callable[..., Any]:
    def formula(call: Call, x: Any, start: Any, *weights: Any) -> Any:
        starts = tuple(start) if isinstance(start, (list, tuple)) else (start,)
        shares = nn.linear(x, weights[0], weights[2] if len(weights) > 2 else None)
        found = step(shares, starts, (weights[1], weights[3] if len(weights) > 3 else None))
        return list(found) if states > 1 else found[0]

    return formula


TABLE: Final[Table] = {
    "lstm.input": _network(_lstm_step, 2), "gru.input": _network(_gru_step, 1),
    "rnn_tanh.input": _network(_plain_step(np.tanh), 1), "rnn_relu.input": _network(_plain_step(nn.relu), 1),
    "lstm_cell": _cell(_lstm_step, 2), "gru_cell": _cell(_gru_step, 1), "rnn_tanh_cell": _cell(_plain_step(np.tanh), 1),
    "rnn_relu_cell": _cell(_plain_step(nn.relu), 1),
}  # fmt: skip
