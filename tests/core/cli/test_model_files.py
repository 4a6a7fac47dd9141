"""Commands on model files and on functions of JAX, end to end through the process that runs user code."""

import json
import re

import numpy as np
import pytest

from topos_core.cli.main import main

JAX = """\
import jax
import jax.numpy as jnp


# topos: entry inputs=f32[4,8],w=f32[8,6]
def head(x, w):
    return jax.nn.softmax(jnp.tanh(x) @ w, axis=-1)
"""


def write_model(folder):
    from tests.core.importers.onnx.models import model, weights

    onnx = pytest.importorskip("onnx")
    nodes = [
        onnx.helper.make_node("Conv", ["x", "w"], ["c"], "/block/conv/Conv", pads=[1, 1, 1, 1]),
        onnx.helper.make_node("Relu", ["c"], ["y"], "/block/Relu"),
    ]
    made = model(
        nodes, [("x", "f32", ["N", 8, 16, 16])], [("y", "f32", ["N", 16, 16, 16])], {"w": weights(16, 8, 3, 3)}
    )
    onnx.save(made, str(folder / "net.onnx"))


def test_a_model_file_is_planned_run_and_emitted(empty_project, capsys):
    write_model(empty_project)
    assert main(["plan", "net.onnx", "--dim", "N=2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["target"] == "net.onnx:main"
    region = next(region for region in document["regions"] if region["verdict"] == "taken")
    assert (region["path"], region["line"], region["scope"]) == ("net.onnx", 3, ["block"])
    assert main(["run", "net.onnx", "--dim", "N=2", "--compare"]) == 0
    assert re.search("inside the envelope|equal to the interpreter bit for bit", capsys.readouterr().out)
    assert main(["emit", "net.onnx", "--dim", "N=2", "-o", "net.mlir"]) == 0
    pytest.importorskip("jaxlib")
    capsys.readouterr()
    assert main(["plan", "net.mlir"]) == 0
    assert "conv" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("4", "net.onnx has lines 1 to 3, not 4"),
        ("0", "not 0"),
        ("1:99", "line 1 of net.onnx has columns 1 to 24, not 99"),
    ],
)
def test_explain_refuses_a_line_that_the_listing_of_a_model_has_not(empty_project, capsys, place, said):
    write_model(empty_project)
    assert main(["explain", "net.onnx:3", "--dim", "N=2"]) == 0
    assert "convolution 3x3" in capsys.readouterr().out
    assert main(["explain", f"net.onnx:{place}", "--dim", "N=2"]) == 2
    assert said in capsys.readouterr().err


def test_an_extent_may_have_any_name_that_a_model_gives_it(empty_project, capsys):
    from tests.core.importers.onnx.models import model

    onnx = pytest.importorskip("onnx")
    node = onnx.helper.make_node("Relu", ["input.1"], ["y"])
    made = model([node], [("input.1", "f32", [None, "past + 1"])], [("y", "f32", [None, None])])
    onnx.save(made, str(empty_project / "net.onnx"))
    assert main(["plan", "net.onnx"]) == 3
    assert "--dim input.1_0=4 --dim past=4" in capsys.readouterr().err
    assert main(["plan", "net.onnx", "--dim", "input.1_0=2", "--dim", "past=4", "--json"]) == 0
    assert '"f32[2,5]"' in capsys.readouterr().out
    assert main(["plan", "net.onnx", "--dim", "input.1_0=2", "--dim", "past + 1=4", "--json"]) == 0
    assert '"f32[2,4]"' in capsys.readouterr().out


def test_an_open_extent_is_no_internal_error(empty_project, capsys):
    write_model(empty_project)
    assert main(["plan", "net.onnx"]) == 3
    assert "--dim N=4" in capsys.readouterr().err


def test_a_project_names_extents_and_the_command_line_wins(empty_project, capsys):
    write_model(empty_project)
    (empty_project / "pyproject.toml").write_text("[tool.topos.dims]\nN = 3\nunused = 7\n")
    assert main(["plan", "net.onnx", "--json"]) == 0
    assert '"f32[3,8,16,16]"' in capsys.readouterr().out
    assert main(["plan", "net.onnx", "--dim", "N=2", "--json"]) == 0
    assert '"f32[2,8,16,16]"' in capsys.readouterr().out
    assert main(["plan", "net.onnx", "--dim", "M=2"]) == 2
    assert "no extent is called M" in capsys.readouterr().err


def test_inputs_of_a_model_file_go_by_their_names(empty_project, capsys):
    write_model(empty_project)
    np.savez(empty_project / "inputs.npz", x=np.zeros((1, 8, 16, 16), np.float32))
    assert main(["run", "net.onnx", "--dim", "N=1", "--inputs", "inputs.npz"]) == 0
    assert "0 to 0" in capsys.readouterr().out


def test_a_mark_says_who_records_what_either_could(empty_project, capsys):
    pytest.importorskip("jax")
    text = "import numpy as np\n\n\n# topos: entry {}inputs=f32[4]\ndef f(x):\n    return abs(x) + np.float32(1)\n"
    names = []
    for told in ("", "framework=jax "):
        (empty_project / "net.py").write_text(text.format(told))
        assert main(["plan", "net.py:f", "--json"]) == 0
        names.append(json.loads(capsys.readouterr().out)["names"])
    assert names == [["input", "abs", "constant", "add"], ["input", "abs", "constant", "broadcast", "add"]]
    (empty_project / "net.py").write_text(text.format("framework=tensorflow "))
    assert main(["plan", "net.py:f"]) == 2
    assert "no framework is called 'tensorflow'; write one of numpy, jax, torch" in capsys.readouterr().err


def test_a_function_of_jax_is_planned_at_its_own_lines(empty_project, capsys):
    pytest.importorskip("jax")
    (empty_project / "net.py").write_text(JAX)
    assert main(["plan", "net.py:head", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    softmax = next(region for region in document["regions"] if region["pattern"] == "softmax")
    assert (softmax["line"], softmax["column"]) == (7, 11)
    assert main(["run", "net.py:head", "--compare"]) == 0
