"""torch's own layers are found again by the matcher, at the lines that use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import topos_core as tp

NET = """\
import torch
from torch import nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, inner, out):
        super().__init__()
        self.conv = nn.Conv2d(inner, out, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(out)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


# topos: entry inputs=f32[2,3,16,16]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Block(3, 8)
        self.second = Block(8, 8)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(8 * 4 * 4, 10))

    def forward(self, x):
        x = self.pool(self.first(x))
        x = self.pool(self.second(x))
        return self.head(x)
"""


@pytest.fixture
def plan(tmp_path: Path) -> Any:
    (tmp_path / "torch_net.py").write_text(NET)
    tape = tp.load(f"{tmp_path / 'torch_net.py'}:Net", "f32[2,3,16,16]")
    return tp.plan(tape, machine="reference")


def test_the_layers_of_a_cnn_are_found(plan: Any) -> None:
    found = sorted(decision.match.pattern for decision in (*plan.taken, *plan.declined))
    assert [name for name in found if name != "linear"] == ["conv_bn_activation"] * 2 + ["window_reduce"] * 2
    assert "linear" in found


def test_a_region_stands_at_the_users_expression_and_module_path(plan: Any) -> None:
    regions = [each for each in plan.document()["regions"] if each["pattern"] == "conv_bn_activation"]
    line = 1 + NET.splitlines().index("        return F.relu(self.norm(self.conv(x)))")
    assert [(each["line"], each["column"], each["scope"]) for each in regions] == [
        (line, 15, ["first"]),
        (line, 15, ["second"]),
    ]


def test_a_class_plans_without_weights_and_runs_with_those_of_seed_0(plan: Any) -> None:
    import numpy as np

    first, second = (plan.run(np.ones((2, 3, 16, 16), np.float32)) for _ in range(2))
    assert first.shape == (2, 10)
    np.testing.assert_array_equal(first, second)
    assert {"first.conv.weight", "second.norm.running_mean", "head.1.bias"} <= set(plan.tape.names.values())


def test_one_model_has_the_same_regions_through_topos_and_through_torch(plan: Any) -> None:
    import numpy as np

    from topos_core import nn

    def block(x: Any, weight: Any, mean: Any, variance: Any, scale: Any, shift: Any) -> Any:
        y = nn.conv2d(x, weight, padding=1)
        return nn.relu(nn.batch_norm(y, mean, variance, scale, shift))

    def net(x: Any, first: Any, second: Any, head: Any) -> Any:
        x = nn.max_pool(block(x, *first), 2)
        x = nn.max_pool(block(x, *second), 2)
        return nn.linear(x.reshape(x.shape[0], -1), *head)

    def state(inner: int) -> tuple[Any, ...]:
        rows = [np.ones(8, np.float32) for _ in range(4)]
        return (np.ones((8, inner, 3, 3), np.float32), *rows)

    head = (np.ones((10, 8 * 4 * 4), np.float32), np.ones(10, np.float32))
    tape = tp.trace(net, "f32[2,3,16,16]", state(3), state(8), head)
    ours = tp.plan(tape, machine="reference")

    def regions(each: Any) -> list[tuple[str, str, str]]:
        found = (*each.taken, *each.declined)
        return sorted((d.match.pattern, d.verdict, str(tape_of.type_of(d.match.root))) for d in found)

    tape_of = plan.tape
    theirs = regions(plan)
    tape_of = ours.tape
    assert regions(ours) == theirs


HEADS = """\
import torch.nn.functional as F
from torch import nn


# topos: entry inputs=f32[2,6,16],MASK[2,1,6,6]
class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(16, 48)
        self.outer = nn.Linear(16, 16)

    def forward(self, x, mask):
        q, k, v = self.inner(x).view(2, 6, 3, 2, 8).permute(2, 0, 3, 1, 4)
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.outer(heads.transpose(1, 2).reshape(2, 6, 16))
"""


@pytest.mark.parametrize("kind", ["bool", "f32"])
def test_a_block_of_attention_gives_0_where_torch_does(tmp_path: Path, kind: str) -> None:
    import torch

    scope: dict[str, Any] = {}
    path = tmp_path / "heads.py"
    path.write_text(HEADS.replace("MASK", kind))
    exec(compile(path.read_text(), str(path), "exec"), scope)
    module = scope["Heads"]().eval()
    plan = tp.plan(tp.trace(module, "f32[2,6,16]", f"{kind}[2,1,6,6]"), cost="always")
    assert [d.match.pattern for d in plan.data.decisions if d.verdict == "taken"].count("multi_head_attention") == 1
    seen = np.tri(6, k=-1, dtype=bool) * np.ones((2, 1, 1, 1), bool)
    mask = seen if kind == "bool" else np.where(seen, 0, -np.inf).astype(np.float32)
    x = np.random.default_rng(5).normal(size=(2, 6, 16)).astype(np.float32)
    with torch.no_grad():
        wanted = module(torch.tensor(x), torch.tensor(mask)).numpy()
    np.testing.assert_allclose(plan.run(x, mask), wanted, rtol=1e-5, atol=1e-6)


LAYERS = (
    HEADS
    + """

# topos: entry inputs=f32[2,6,16],MASK[2,1,6,6]
class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Heads() for _ in range(3))

    def forward(self, x, mask):
        for layer in self.layers:
            x = x + layer(x, mask)
        return x
"""
)


@pytest.mark.parametrize("kind", ["bool", "f32"])
def test_what_a_mask_hides_is_worked_out_once_for_all_layers(tmp_path: Path, kind: str) -> None:
    scope: dict[str, Any] = {}
    path = tmp_path / "layers.py"
    path.write_text(LAYERS.replace("MASK", kind))
    exec(compile(path.read_text(), str(path), "exec"), scope)
    plan = tp.plan(tp.trace(scope["Layers"]().eval(), "f32[2,6,16]", f"{kind}[2,1,6,6]"), cost="always")
    names = [d.match.pattern for d in plan.data.decisions if d.verdict == "taken"]
    assert names.count("multi_head_attention") == 3
    assert len([name for name in names if "elementwise" in name]) == 1
