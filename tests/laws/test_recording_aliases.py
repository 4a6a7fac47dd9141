"""The law of handles: random programs full of views, copies and in-place updates give NumPy's numbers, or are refused.

A program is text: variables are made from each other by arithmetic, views and copies, some are updated in place, some are
forgotten, and all that live are returned.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from topos_core.errors import RecordingError
from topos_core.recording.spec import f32
from topos_core.recording.trace import trace
from topos_core.run.interpreter import interpret

VIEWS = (
    "{a}.reshape(-1)", "{a}.reshape(4, 3)", "{a}.T", "{a}[::-1]", "{a}[1:]", "{a}[:]", "{a}[..., None]", "{a}.reshape({a}.shape)",
    "np.transpose({a})", "np.flip({a})", "np.expand_dims({a}, 0)", "np.squeeze({a})", "{a}[0]", "np.atleast_2d({a})",
    "np.broadcast_to({a}, (2, *{a}.shape))", "np.moveaxis({a}, 0, -1)", "np.einsum('...i->i...', {a})", "np.ravel({a})",
    "np.split({a}, 1)[0]", "np.diagonal({a}.reshape(2, -1))", "np.lib.stride_tricks.sliding_window_view({a}, 1, axis=0)",
)  # fmt: skip
COPIES = (
    "+{a}", "{a} * 1", "{a}.copy()", "{a}.astype('f4')", "{a} + {b}.sum()", "np.where({a} > 0, {a}, 0)", "np.pad({a}, 0)",
    "np.roll({a}, 0)", "np.concatenate([{a}])", "{a}.flatten()", "np.maximum({a}, 0)", "np.clip({a}, None, None)", "np.tile({a}, 1)",
    "{a}[[0]]", "{a} - {a}.mean(-1, keepdims=True)", "np.repeat({a}, 1, axis=0)", "np.copy({a})", "abs({a})", "np.round({a})",
    "np.diff({a}, n=0)", "np.sum({a}, axis=())", "np.tril({a}.reshape(2, -1))", "{a}.reshape(-1)[0]",
)  # fmt: skip
UPDATES = ("{a} += 1", "{a} *= 2", "{a} -= {b}.sum()", "{a} /= 3", "{a} += {a}", "{a} **= 2", "{a} *= {b}.max()")


def program(seed: int) -> str:
    """Writes a program of x and y, f32[3,4] each."""
    chooser = random.Random(seed)
    lines = ["def f(x, y):", "    a0 = x * 2", "    a1 = y + 1"]
    alive = ["a0", "a1"] + (["x"] if chooser.random() < 0.3 else [])
    for k in range(2, chooser.randint(4, 12)):
        a, b = chooser.choice(alive), chooser.choice(alive)
        kind = chooser.random()
        if kind < 0.4:
            lines.append(f"    a{k} = " + chooser.choice(VIEWS).format(a=a, b=b))
            alive.append(f"a{k}")
        elif kind < 0.6:
            lines.append(f"    a{k} = " + chooser.choice(COPIES).format(a=a, b=b))
            alive.append(f"a{k}")
        elif kind < 0.68:
            lines.append(f"    a{k} = {a}")
            alive.append(f"a{k}")
        elif kind < 0.88 or len(alive) < 3:
            lines.append("    " + chooser.choice(UPDATES).format(a=a, b=b))
        else:
            lines.append(f"    del {a}")
            alive.remove(a)
    return "\n".join([*lines, f"    return {', '.join(alive)},"])


def outcome(seed: int) -> str:
    """Runs a program both ways; tells what happened."""
    text = program(seed)
    space: dict[str, Any] = {"np": np}
    exec(text, space)
    arrays = [np.random.default_rng(k).standard_normal((3, 4)).astype("f4") for k in (1, 2)]
    with np.errstate(all="ignore"):
        try:
            wanted = space["f"](*[array.copy() for array in arrays])
        except (ValueError, IndexError):  # a shape that does not fit, or a read-only view
            return "no program"
        try:
            tape = trace(space["f"], f32[3, 4], f32[3, 4])
        except RecordingError as error:
            if "would also change" in error.message:
                return "refused"
            raise
        got = interpret(tape, arrays)
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, err_msg=text)
    return "same"


@pytest.mark.parametrize("batch", range(10))
def test_random_programs_with_views_and_updates_give_numpys_numbers_or_are_refused(batch: int) -> None:
    found = [outcome(seed) for seed in range(200 * batch, 200 * batch + 200)]
    assert found.count("same") > 60
    assert found.count("refused") > 10
