"""Frames come apart and together at any boundary, and what does not look like a reply is refused."""

import json

import pytest

import topos_core as tp
from topos_core import api
from topos_core.session.messages import HEADER, MAX_FRAME, Decoder, MessageError, check_reply, encode, failure

ERROR = failure("TP402", "it raised", path="model.py", line=3, column=0, end_line=3, end_column=5)


def check(do, reply, words):
    with pytest.raises(MessageError) as caught:
        check_reply(do, reply)
    assert words in str(caught.value)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_frames_come_apart_at_any_boundary(size):
    messages = [{"a": 1}, {}, {"text": "é🜁\n"}, {"b": [None, 1.5, True]}]
    data = b"".join(map(encode, messages))
    decoder = Decoder()
    assert [m for k in range(0, len(data), size) for m in decoder.feed(data[k : k + size])] == messages


def test_paths_that_are_no_utf_8_survive():
    assert Decoder().feed(encode({"path": "a\udcffb"})) == [{"path": "a\udcffb"}]


def test_what_json_cannot_hold_is_told():
    with pytest.raises(MessageError, match="JSON cannot"):
        encode({"a": {1, 2}})


@pytest.mark.parametrize(
    "data",
    [
        (MAX_FRAME + 1).to_bytes(4, "big"),
        b"\0\0\0\2[]",
        b"\0\0\0\1{",
        b"\0\0\0\1\xff",
        b"\0\x01\x86\xa0" + b"[" * 100_000,
    ],
    ids=["too long", "no object", "cut short", "no text", "nested too deep"],
)
def test_bytes_that_are_no_frame_are_refused(data):
    with pytest.raises(MessageError):
        Decoder().feed(data)


WRONG = {
    "nothing": ("trace", {}, "'entries' is missing"),
    "no list": ("trace", {"entries": {}}, "'entries' is dict"),
    "no target": ("trace", {"entries": [{"document": {}}]}, "'target' is missing"),
    "no document": ("replan", {"document": []}, "'document' is list"),
    "another schema": ("replan", {"document": {"schema": "topos.plan/2"}}, "topos.plan/2"),
    "half a document": ("replan", {"document": {"schema": "topos.plan/1"}}, "'target'"),
    "no changes": ("replan", {"changes": {}}, "'changed' is missing"),
    "no changed place": (
        "replan",
        {
            "changes": {
                "removed": [],
                "findings": [],
                "observations": [],
                "changed": [{"line": -1}],
                "counts": {},
                "totals": {},
                "liveness": {},
            }
        },
        "line -1",
    ),
    "no text": ("emit", {"text": 1}, "'text' is int"),
    "no listing": ("kernels", {"listing": []}, "'listing' is list"),
    "no kernels": ("kernels", {"listing": {}}, "'kernels' is missing"),
    "a kernel's name that hides": (
        "kernels",
        {"listing": {"kernels": [{"name": "a\x1b[2Jb", "text": "a\nb"}]}},
        "escapes",
    ),
    "no result": ("run", {}, "'result' is missing"),
    "no error": ("run", {"error": "no"}, "an error is str"),
    "no message": ("run", {"error": {"code": "TP402"}}, "'message' is missing"),
    "no position": ("run", {"error": {**ERROR, "line": -1}}, "line -1"),
    "no path": ("run", {"error": {**ERROR, "path": 7}}, "path 7"),
    "no related place": ("run", {"error": {**ERROR, "related": [3]}}, "related places is int"),
    "a message that hides": ("run", {"error": {**ERROR, "message": "a\x1b[2Jb"}}, "escapes"),
}


@pytest.mark.parametrize(("do", "reply", "words"), WRONG.values(), ids=WRONG.keys())
def test_what_does_not_look_like_a_reply_is_refused(do, reply, words):
    check(do, reply, words)


def test_an_error_is_a_reply_to_anything():
    for do in ("trace", "replan", "emit", "run"):
        check_reply(do, {"error": ERROR})
    assert failure("TP402", "\x1b[31m")["message"] == "\\x1b[31m"


def test_text_is_looked_at_where_a_frame_has_more_escapes_than_its_sources():
    tape = api.trace(lambda x: x + 1, tp.f32[2])
    document = json.loads(json.dumps(api.plan(tape, machine="reference").document(target="m.py:main")))
    line = 'x = "\\\\n"  # \\ / \t\n'
    document["sources"] = [line]
    reply = {"id": 1, "entries": [{"target": "m.py:main", "document": document, "off": [], "off_unknown": {}}]}
    (frame,) = Decoder().feed(encode(reply))
    assert frame.escaped == 2  # of the source: a tab and a line end
    check_reply("trace", frame)
    for forged, escaped in (("a\nb", 3), ("\u202e", None), ("\x7f", None), ("\x1b[2J", 3)):
        document["functions"] = [forged]
        (frame,) = Decoder().feed(encode(reply))
        assert frame.escaped == escaped
        with pytest.raises(MessageError, match="characters that `display"):
            check_reply("trace", frame)


def test_escapes_are_counted_as_json_reads_them():
    assert Decoder().feed(encode({"a": "\\n", "b": '"\\"', "c": "\\\\\n"}))[0].escaped == 1
    body = b'{"a": "\\u0041\\/\\\\u0041"}'
    assert Decoder().feed(HEADER.pack(len(body)) + body)[0].escaped == 1
