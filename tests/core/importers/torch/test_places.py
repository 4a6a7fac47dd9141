"""Where ops stand: exact expressions, helpers' own lines, constructor calls, module paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.core.importers.torch.check import torch
from topos_core.api import load
from topos_core.importers.torch_export import frames
from topos_core.tape.tape import Tape

NET = """\
import copy
import torch
from torch import nn


def scaled(y):
    return y * 3


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return scaled(self.conv(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 4, 1),
            nn.ReLU(), Block(4),
        )

    def forward(self, x):
        y = self.layers(x)
        a, b = y - 2, -y
        return torch.tanh(a) + b


def plain():
    return nn.Sequential(nn.Tanh(), nn.Sigmoid())


def cloned():
    layer = nn.Sequential(nn.Tanh())
    return nn.Sequential(copy.deepcopy(layer), layer)
"""


def loaded(folder: Path, name: str) -> Tape:
    path = folder / f"torch_places_{folder.name}.py"
    path.write_text(NET)
    return load(f"{path}:{name}", "f32[1,3,8,8]")


def written(tape: Tape, op: str) -> list[tuple[str, str]]:
    """Gives the text at the place of every op of a name, and its module path."""
    found = []
    for value, each in enumerate(tape.ops):
        if each.name == op:
            place = tape.location_of(value)
            span = place.span
            text = NET.splitlines()[span.line - 1]
            found.append(
                (text[span.column : span.end_column if span.end_line == span.line else None], ".".join(place.scope))
            )
    return found


def test_two_ops_of_one_line_have_their_own_columns(tmp_path: Path) -> None:
    tape = loaded(tmp_path, "Net")
    assert written(tape, "sub") == [("y - 2", "")]
    assert written(tape, "neg") == [("-y", "")]
    assert written(tape, "tanh") == [("torch.tanh(a)", "")]


def test_a_helpers_op_stands_in_the_helper_with_its_caller_around_it(tmp_path: Path) -> None:
    tape = loaded(tmp_path, "Net")
    (at,) = (value for value, op in enumerate(tape.ops) if op.name == "mul")
    lines = [NET.splitlines()[frame.span.line - 1].strip() for frame in tape.location_of(at).frames]
    assert lines == ["return y * 3", "return scaled(self.conv(x))", "y = self.layers(x)"]
    assert tape.location_of(at).scope == ("layers", "2")


def test_a_module_in_a_sequential_stands_at_its_constructor(tmp_path: Path) -> None:
    tape = loaded(tmp_path, "Net")
    assert written(tape, "maximum") == [("nn.ReLU()", "layers.1")]
    assert written(tape, "matmul") == [("nn.Conv2d(3, 4, 1)", "layers.0"), ("self.conv(x)", "layers.2.conv")]


def test_a_library_module_at_the_root_stands_at_its_constructor(tmp_path: Path) -> None:
    assert written(loaded(tmp_path, "plain"), "tanh") == [("nn.Tanh()", "0")]


def test_a_cloned_module_keeps_its_constructor(tmp_path: Path) -> None:
    assert written(loaded(tmp_path, "cloned"), "tanh") == [("nn.Tanh()", "0.0"), ("nn.Tanh()", "1.0")]


def built(tape: Tape, name: str) -> list[str | None]:
    """Gives the line on which the module of each op of a name was built."""
    places = [tape.location_of(value).built for value, op in enumerate(tape.ops) if op.name == name]
    return [NET.splitlines()[place.span.line - 1].strip() if place is not None else None for place in places]


def test_an_op_knows_where_its_module_was_built(tmp_path: Path) -> None:
    tape = loaded(tmp_path, "Net")
    assert built(tape, "matmul") == ["nn.Conv2d(3, 4, 1),", "self.conv = nn.Conv2d(width, width, 3, padding=1)"]
    assert built(tape, "sub") == [None]
    assert set(built(tape, "mul")) == {"nn.ReLU(), Block(4),"}


def test_without_torchs_tracer_places_come_from_its_stack_traces(tmp_path: Path, monkeypatch: Any) -> None:
    from torch.fx.experimental import proxy_tensor

    monkeypatch.setattr(frames, "TRACER", "_NoSuchTracer")
    assert not hasattr(proxy_tensor, "_NoSuchTracer")
    tape = loaded(tmp_path, "Net")
    assert written(tape, "sub") == [("a, b = y - 2, -y", "")]
    assert written(tape, "neg") == [("a, b = y - 2, -y", "")]
    assert all(op.name != "opaque" for op in tape.ops)


def test_the_tracer_that_is_wrapped_is_the_one_that_this_torch_has() -> None:
    from torch.fx.experimental import proxy_tensor

    assert hasattr(getattr(proxy_tensor, frames.TRACER), "create_node"), torch.__version__
