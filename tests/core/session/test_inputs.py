"""Inputs come from checked files or from a seed."""

import io
import zipfile

import ml_dtypes
import numpy as np
import pytest

from topos_core.errors import ConfigurationError
from topos_core.session.inputs import check_inputs, read_inputs, seeded_inputs
from topos_core.tape.type import TensorType

NAMES = ("image", "weight")
TYPES = (TensorType("f32", (2, 3)), TensorType("i64", (4,)))
IMAGE = np.arange(6, dtype="f4").reshape(2, 3)
WEIGHT = np.arange(4)


def check(file, words, code="TP502"):
    with pytest.raises(ConfigurationError) as caught:
        read_inputs(str(file), NAMES, TYPES)
    assert caught.value.code == code
    assert words in caught.value.message


@pytest.fixture
def save(tmp_path):
    def save(*arrays, **named):
        np.savez(tmp_path / "inputs.npz", *arrays, **named)
        return tmp_path / "inputs.npz"

    return save


@pytest.mark.parametrize(
    ("arrays", "named"),
    [((), {"weight": WEIGHT, "image": IMAGE}), ((IMAGE, WEIGHT), {})],
    ids=["by name", "by position"],
)
def test_arrays_are_read(save, arrays, named):
    image, weight = read_inputs(str(save(*arrays, **named)), NAMES, TYPES)
    assert np.array_equal(image, IMAGE)
    assert np.array_equal(weight, WEIGHT)


def test_fortran_order_and_foreign_byte_order_are_read_by_value(save):
    image, _ = read_inputs(str(save(image=np.asfortranarray(IMAGE).astype(">f4"), weight=WEIGHT)), NAMES, TYPES)
    assert np.array_equal(image, IMAGE)


def test_bfloat16_is_read_from_the_bytes_that_numpy_writes(save):
    file = save(x=np.ones(3, ml_dtypes.bfloat16))
    (found,) = read_inputs(str(file), ("x",), (TensorType("bf16", (3,)),))
    assert found.dtype == ml_dtypes.bfloat16
    assert (found == 1).all()


WRONG = {
    "another shape": ({"image": IMAGE.T, "weight": WEIGHT}, "f32[3,2], the entry takes image f32[2,3]"),
    "another dtype": ({"image": IMAGE.astype("f8"), "weight": WEIGHT}, "is f64[2,3]"),
    "a dtype without a name": ({"image": IMAGE.astype("c8"), "weight": WEIGHT}, "complex64[2,3]"),
    "objects": ({"image": np.array([{}], object), "weight": WEIGHT}, "object"),
    "one missing": ({"image": IMAGE}, "no array for weight; it has image"),
    "one too many": ({"image": IMAGE, "weight": WEIGHT, "bias": IMAGE}, "has bias"),
}


@pytest.mark.parametrize(("arrays", "words"), WRONG.values(), ids=WRONG.keys())
def test_what_does_not_fit_is_told_with_both_types(save, arrays, words):
    check(save(**arrays), words)


def test_a_file_that_is_none_is_told(tmp_path):
    check(tmp_path / "nope.npz", "no such file", "TP505")
    (tmp_path / "text.npz").write_text("no zip")
    check(tmp_path / "text.npz", "no .npz file", "TP505")


def test_a_header_that_promises_more_than_there_is_is_refused_before_reading(tmp_path):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, IMAGE)
    with zipfile.ZipFile(tmp_path / "short.npz", "w") as archive:
        archive.writestr("image.npy", stream.getvalue()[:-4])
        archive.writestr("weight.npy", b"nothing")
    check(tmp_path / "short.npz", "its header promises")


def test_seeded_inputs_keep_their_ranges_and_repeat():
    types = (TensorType("f32", (100,)), TensorType("i64", (100,)), TensorType("u8", (100,)), TensorType("bool", (100,)))
    ranges = (None, (0, 5), None, None)
    first, again = seeded_inputs(types, ranges, 7), seeded_inputs(types, ranges, 7)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert [array.dtype.str[1:] for array in first] == ["f4", "i8", "u1", "b1"]
    assert 0.5 < first[0].std() < 1.5
    assert set(first[1].tolist()) == set(range(5))
    assert first[3].any()
    assert not first[3].all()


def test_arrays_from_user_code_are_checked():
    assert [array.shape for array in check_inputs([IMAGE, WEIGHT], NAMES, TYPES, "example")] == [(2, 3), (4,)]
    with pytest.raises(
        ConfigurationError, match=r"example gives 1 arrays, the entry takes 2: image f32\[2,3\], weight i64\[4\]"
    ):
        check_inputs([IMAGE], NAMES, TYPES, "example")
    with pytest.raises(ConfigurationError, match=r"image of example is f32\[3,2\]"):
        check_inputs([IMAGE.T, WEIGHT], NAMES, TYPES, "example")
    with pytest.raises(ConfigurationError, match=r"weight of example is a masked array"):
        check_inputs([IMAGE, np.ma.array(WEIGHT)], NAMES, TYPES, "example")
