import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper  # noqa: E402

from tests.core.importers.onnx.models import model, record, weights  # noqa: E402
from topos_core.errors import TraceError  # noqa: E402
from topos_core.run.interpreter import interpret  # noqa: E402


def external(location: str, offset: int | None = None, length: int | None = None) -> Any:
    """A model whose one weight, f32[64,64], lies in another file."""
    made = model([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", "f32", [2, 64])], [("y", "f32", [2, 64])])
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[64, 64], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    made.graph.initializer.append(tensor)
    return made


def test_external_data_is_mapped_at_its_offset(tmp_path: Path) -> None:
    weight = weights(64, 64)
    (tmp_path / "net.bin").write_bytes(b"x" * 24 + weight.tobytes())
    tape = record(external("net.bin", 24, weight.nbytes), tmp_path)
    (value,) = tape.parameters
    assert isinstance(tape.defaults[value].base, (np.memmap, type(None))) or isinstance(tape.defaults[value], np.memmap)
    assert not tape.defaults[value].flags.writeable
    x = weights(2, 64, seed=1)
    np.testing.assert_allclose(interpret(tape, [x])[0], x @ weight, rtol=1e-5, atol=1e-6)


def test_two_gigabytes_of_external_data_are_not_read(tmp_path: Path) -> None:
    with open(tmp_path / "net.bin", "wb") as stream:
        stream.truncate(2**31)  # a hole: nothing of it is on disk
    made = external("net.bin")
    made.graph.initializer[0].dims[:] = [64, 2**23]
    made.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 2**23
    tape = record(made, tmp_path)
    assert tape.defaults[tape.parameters[0]].nbytes == 2**31


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("../net.bin", "under the model's own folder"),
        ("/etc/passwd", "under the model's own folder"),
        ("", "under the model's own folder"),
        ("a/../../net.bin", "under the model's own folder"),
        ("link.bin", "symbolic link"),
        ("linked/net.bin", "symbolic link"),
        ("folder", "no regular file|cannot be read"),
        ("missing.bin", "cannot be read"),
        ("pipe", "no regular file"),
    ],
)
def test_external_data_elsewhere_is_refused(tmp_path: Path, location: str, message: str) -> None:
    home = tmp_path / "home"
    (home / "folder").mkdir(parents=True)
    (home / "real").mkdir()
    for path in (tmp_path / "net.bin", home / "net.bin", home / "real" / "net.bin"):
        path.write_bytes(bytes(64 * 64 * 4))
    (home / "link.bin").symlink_to(tmp_path / "net.bin")
    (home / "linked").symlink_to(home / "real")
    os.mkfifo(home / "pipe")
    with pytest.raises(TraceError, match=message):
        record(external(location), home)


@pytest.mark.parametrize(
    ("offset", "length", "message"),
    [(1, None, "which has 16384"), (-4, None, "names bytes -4"), (0, 16380, "needs 16384"), (2**62, None, "which has")],
)
def test_external_data_out_of_bounds_is_refused(tmp_path: Path, offset: int, length: int | None, message: str) -> None:
    (tmp_path / "net.bin").write_bytes(bytes(64 * 64 * 4))
    with pytest.raises(TraceError, match=message):
        record(external("net.bin", offset, length), tmp_path)


def test_an_initialiser_with_too_few_bytes_is_refused(tmp_path: Path) -> None:
    made = model([helper.make_node("Relu", ["w"], ["y"])], [], [("y", "f32", [2, 2])])
    made.graph.initializer.append(TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 2], raw_data=b"12345678"))
    with pytest.raises(TraceError, match="has 8 bytes, f32\\[2, 2\\] needs 16"):
        record(made, tmp_path)
