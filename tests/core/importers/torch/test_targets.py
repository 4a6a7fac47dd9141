"""What is torch's: classes, instances, factories and functions; weights are made only when they are asked for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topos_core as tp
from tests.core.importers.torch.check import opaque, torch
from topos_core.importers.imported import trace, weights_of
from topos_core.importers.torch_export.target import target_of
from topos_core.session.loading import load

FILE = """\
import sys
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.fc = nn.Linear(4, 3)
        self.register_buffer("table", torch.arange(3))

    def forward(self, x, scale=None):
        y = self.fc(self.norm(x)) + self.table
        return y if scale is None else y * scale


class Training(Net):
    def __init__(self):
        super().__init__()
        self.train()


class Reading(nn.Module):
    def __init__(self):
        super().__init__()
        rates = [x.item() for x in torch.linspace(0, 1, 3)]
        self.fc = nn.Linear(4, len(rates))
        self.norm = float(self.fc.weight.norm())

    def forward(self, x):
        return self.fc(x) * self.norm


class Huge(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 10**9, bias=False)

    def forward(self, x):
        return self.fc(x).sum(-1)


class Branching(nn.Module):
    def forward(self, x):
        print("seen", file=sys.stderr)
        if x.sum() > 0:
            return x
        return -x


class Failing(nn.Module):
    def forward(self, x):
        return x.no_such_method()


net = Net().eval()


def factory():
    return Net()


def wrong():
    return torch.tensor(3)


def function(x):
    return F.relu(x) * 2


def through(x):
    return helper(x)


def helper(x):
    return torch.tanh(x)


def with_net(x):
    return net(x).softmax(-1)


def three():
    return np.pi


def numpys(x):
    return np.maximum(x, 0)
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("targets")
    (folder / "torch_targets.py").write_text(FILE)
    sys.path.insert(0, str(folder))
    import torch_targets

    sys.path.remove(str(folder))
    return torch_targets


@pytest.mark.parametrize(
    ("name", "kind"),
    [("Net", "class"), ("net", "instance"), ("factory", "factory"), ("function", "function"), ("through", "function"),
     ("with_net", "function"), ("numpys", None)],
)  # fmt: skip
def test_what_torch_records_is_told_by_what_it_mentions(file: Any, name: str, kind: str | None) -> None:
    target = target_of(getattr(file, name))
    assert (None if target is None else target.kind) == kind


def test_a_factory_that_mentions_no_torch_is_known_by_what_its_file_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import torch\nimport os as layers\n\n\ndef model():\n    return layers.made()\n"
    (tmp_path / "factory_by_imports.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    module = load(str(tmp_path / "factory_by_imports.py"), text, str(tmp_path))  # as the agent does, with its loader
    target = target_of(module.model)
    assert target is not None
    assert target.kind == "factory"


CONFIG = "(num_hidden_layers=1, hidden_size=8, num_attention_heads=2, intermediate_size=8, vocab_size=9)"
FACTORIES = {
    "named in its file": f"import transformers\n\n\ndef model(layers=1):\n    return transformers.BertModel(transformers.BertConfig{CONFIG})\n",
    "found by its config": f"import transformers as t\n\n\ndef model():\n    return t.AutoModel.from_config(t.BertConfig{CONFIG})\n",
    "imported where it is made": f"def model():\n    from transformers import BertConfig, BertModel\n\n    return BertModel(BertConfig{CONFIG})\n",
    "made by somebody else": f"import importlib\n\n\ndef model():\n    t = importlib.import_module('transformers')\n    return t.BertModel(t.BertConfig{CONFIG})\n",
}


@pytest.mark.parametrize("text", FACTORIES.values(), ids=FACTORIES.keys())
def test_a_factory_of_a_package_of_models_need_not_name_torch(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "packaged.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    tape = trace(load(str(tmp_path / "packaged.py"), text, str(tmp_path)).model, "i64[2,4]<9")
    assert len(tape.parameters) > 10


def test_a_function_without_arguments_that_is_fed_and_gives_no_module_says_so(file: Any) -> None:
    with pytest.raises(tp.TraceError, match=r"three\(\) gives a float, not a module"):
        trace(file.three, "f32[2]")


def test_a_function_of_numpy_in_the_same_file_is_recorded_by_topos(file: Any) -> None:
    assert [op.name for op in trace(file.numpys, "f32[2]").ops] == ["input", "constant", "maximum"]


@pytest.mark.parametrize("name", ["Net", "net", "factory", "with_net"])
def test_parameters_keep_their_module_names(file: Any, name: str) -> None:
    tape = trace(getattr(file, name), "f32[2,4]")
    prefix = "net." if name == "with_net" else ""
    names = {tape.names[value] for value in tape.parameters}
    assert names == {
        f"{prefix}{each}"
        for each in ("norm.running_mean", "norm.running_var", "norm.weight", "norm.bias", "fc.weight", "fc.bias")
    }


def test_an_integer_buffer_is_a_constant(file: Any) -> None:
    tape = trace(file.net, "f32[2,4]")
    tables = [tape.constant(value) for value in range(len(tape.ops)) if isinstance(tape.constant(value), np.ndarray)]
    assert [list(table) for table in tables] == [[0, 1, 2]]


def test_inputs_are_named_by_forward_and_may_be_given_by_name(file: Any) -> None:
    tape = trace(file.net, "f32[2,4]", scale="f32[3]")
    assert [tape.names[value] for value in tape.inputs] == ["x", "scale"]


def test_a_class_is_in_evaluation_mode_unless_it_asks_for_training(file: Any) -> None:
    assert not [each for each in trace(file.Net, "f32[2,4]").observations if each.kind == "kept"]
    assert [each for each in trace(file.Training, "f32[2,4]").observations if each.kind == "kept"]


def test_an_instance_has_its_weights_and_a_class_gets_them_from_seed_0(file: Any) -> None:
    assert set(trace(file.net, "f32[2,4]").defaults) == set(trace(file.net, "f32[2,4]").parameters)
    tape = trace(file.Net, "f32[2,4]")
    names = {tape.names[value] for value in tape.parameters if value not in tape.defaults}
    assert {"fc.weight", "fc.bias", "norm.weight"} <= names
    first, second = weights_of(file.Net, tape), weights_of(file.Net, tape)
    assert set(first) == set(tape.parameters)
    assert all(np.array_equal(first[value], second[value]) for value in first)


def test_a_four_billion_parameter_layer_is_planned_without_its_weights(file: Any) -> None:
    tape = trace(file.Huge, "f32[2,4]")
    assert tape.type_of(tape.parameters[0]).bytes == 16 * 10**9
    assert opaque(tape) == []


def test_a_constructor_that_reads_its_weights_gets_them(file: Any) -> None:
    assert len(trace(file.Reading, "f32[2,4]").parameters) == 2


@pytest.mark.parametrize(
    ("name", "code", "text", "words"),
    [
        ("Branching", "TP401", "if x.sum() > 0:", "elements of a tensor"),
        ("Failing", "TP402", "return x.no_such_method()", "no_such_method"),
        ("wrong", "TP408", "", "gives a Tensor, not a module"),
    ],
)
def test_what_cannot_be_exported_is_told_at_the_users_line(
    file: Any, name: str, code: str, text: str, words: str
) -> None:
    with pytest.raises(tp.TraceError) as caught:
        trace(getattr(file, name), "f32[2,4]")
    assert caught.value.code == code
    assert words in caught.value.message
    if text:
        assert caught.value.span is not None
        assert text in FILE.splitlines()[caught.value.span.line - 1]


@pytest.mark.parametrize(("name", "written"), [("Branching", "seen\n"), ("Failing", "")])
def test_a_failing_export_writes_what_user_code_writes_and_no_more(
    file: Any, name: str, written: str, capfd: Any
) -> None:
    with pytest.raises(tp.TraceError):
        trace(getattr(file, name), "f32[2,4]")
    assert capfd.readouterr() == ("", written)


def test_specs_that_do_not_fit_forward_are_refused(file: Any) -> None:
    with pytest.raises(tp.ConfigurationError) as caught:
        trace(file.net, "f32[2,4]", "f32[3]", "f32[3]")
    assert caught.value.code == "TP502"


def test_importing_topos_loads_no_torch() -> None:
    import subprocess

    code = "import sys, topos_core as tp; tp.trace(lambda x: x + 1, 'f32[2]'); print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
    assert torch.__version__
