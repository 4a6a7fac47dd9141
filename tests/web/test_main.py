"""`topos view` as a process: what it prints, how it ends, what it answers on real models."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from topos_web.__main__ import main
from topos_web.agents import AgentPlanner
from topos_web.packing import unpack

ROOT = Path(__file__).resolve().parents[2]
MODEL = """\
import numpy as np
import topos_core as tp


@tp.model(x=tp.f32[4, 8], w=tp.f32[8, 8])
def main(x, w):
    hidden = np.maximum(x @ w, 0)
    return np.tanh(hidden) * 2.0
"""


@contextlib.contextmanager
def view(*targets: str, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "topos_web", *targets, "--no-browser", "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise


def get(url: str, path: str) -> Any:
    base, token = url.split("?")
    with urllib.request.urlopen(f"{base}{path}?{token}") as answer:
        return json.load(answer)


def first_plan(process: subprocess.Popen[str], url: str) -> dict[str, Any]:
    assert process.stdout is not None
    process.stdout.readline()  # the plan's first line stands there once it is traced
    plan: dict[str, Any] = get(url, "api/v1/plans")[0]
    return plan


@pytest.mark.parametrize(
    ("targets", "status", "message"),
    [
        (["net.py:man"], 3, "net.py has no entry 'man'; it has main; mark one"),
        (["net.py", "net.py:man"], 3, "net.py has no entry 'man'"),
        (["plain.py"], 3, "plain.py has no marked entry; mark one"),
        (["net.onnx:man"], 3, "net.onnx has no entry 'man'; a model file has one, main, which need not be named"),
        (["nett.py"], 2, "nett.py does not exist"),
        (["notes.txt"], 2, "notes.txt is none of the files that topos reads: .py, .onnx, .mlir"),
    ],
)
def test_a_target_that_is_not_there_ends_it_at_once(
    targets: list[str], status: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "net.py").write_text(MODEL)
    (tmp_path / "plain.py").write_text("x = 1\n")
    (tmp_path / "notes.txt").write_text("topos\n")
    (tmp_path / "net.onnx").write_bytes(b"")
    assert main([*(str(tmp_path / target) for target in targets), "--no-browser"]) == status
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("topos view: ")
    assert message in told.err
    assert told.err.count("\n") == 1


def test_an_error_that_an_edit_mends_is_waited_out(tmp_path: Path) -> None:
    broken = ["def main(x:\n    # topos: entry\n", "# topos: ignore[nonsense]\n" + MODEL]
    (tmp_path / "net.py").write_text(broken[0])
    planner = AgentPlanner([str(tmp_path / "net.py:main")])
    try:
        for text in broken:
            (tmp_path / "net.py").write_text(text)
            (traced,) = planner.trace()
            assert traced.error is not None
            (tmp_path / "net.py").write_text(MODEL)
            (traced,) = planner.trace()
            assert traced.document is not None
    finally:
        planner.close()


def test_the_url_comes_first_then_the_plan_and_all_tiers_of_it() -> None:
    with view("examples/observed.py:hidden_observed") as (process, url):
        assert url.startswith("http://127.0.0.1:")
        assert "/?token=" in url
        assert process.stdout is not None
        head = process.stdout.readline()
        assert head.startswith("examples/observed.py:hidden_observed")
        assert "1 blocked" in process.stdout.readline()
        assert process.stderr is not None
        assert process.stderr.readline() == (
            "topos view: tracing examples/observed.py:hidden_observed; here follows each plan as soon as there is one\n"
        )
        assert process.stderr.readline() == f"topos view: the page at {url} follows every save; Ctrl+C ends it\n"
        plan = get(url, "api/v1/plans")[0]
        at = f"api/v1/plans/{plan['id']}"
        regions = get(url, f"{at}/regions")
        blocked = next(r for r in unpack(regions["regions"]) if r["verdict"] == "blocked")
        assert blocked["code"] == "TP101"
        assert get(url, f"{at}/skeleton")["machines"][:1] == ["host"]
        assert "tp.observe(columns" in get(url, f"{at}/sources/0")["text"]
        node = get(url, f"{at}/nodes/{blocked['root']}")
        assert blocked["id"] in node["regions"]
        changes = post(url, f"{at}/whatif", {"base": plan["revision"], "options": {"ignore": blocked["observations"]}})
        assert [r["verdict"] for r in unpack(changes["changed"]) if r["id"] == blocked["id"]] == ["taken"]
        assert changes["counts"]["blocked"] == 0
        text = post(url, f"{at}/emitted", {"base": plan["revision"], "options": {"ignore": blocked["observations"]}})[
            "text"
        ]
        assert "stablehlo.convolution" in text
        freed = {"base": plan["revision"], "options": {"ignore": blocked["observations"]}, "region": blocked["id"]}
        kernels = post(url, f"{at}/kernels", freed)["kernels"]
        started = {kernel["name"] for kernel in kernels if kernel["starts"]}
        assert {"planes", "contraction"} <= started
        assert all("def " in kernel["text"] for kernel in kernels)
        assert post(url, f"{at}/certificate", freed)["answer"] == "true"


def test_each_of_several_plans_is_printed_when_its_target_is_traced(tmp_path: Path) -> None:
    """The second target waits for the first to be printed: if all came at the end, none would."""
    (tmp_path / "a.py").write_text(MODEL)
    waits = (
        "import pathlib, time\nwhile not pathlib.Path(__file__).with_name('go on').exists():\n    time.sleep(0.01)\n"
    )
    (tmp_path / "b.py").write_text(waits + MODEL)
    with view(str(tmp_path / "a.py"), str(tmp_path / "b.py")) as (process, url):
        assert process.stdout is not None
        assert process.stdout.readline().startswith("a.py:main")
        assert [plan["target"] for plan in get(url, "api/v1/plans")] == ["a.py:main"]
        assert get(url, "api/v1/trace")["running"]["target"] == "b.py"
        (tmp_path / "go on").touch()
        while not process.stdout.readline().startswith("b.py:main"):
            pass
        assert [plan["target"] for plan in get(url, "api/v1/plans")] == ["a.py:main", "b.py:main"]


def post(url: str, path: str, body: dict[str, Any]) -> Any:
    base, token = url.split("?")
    request = urllib.request.Request(
        f"{base}{path}?{token}", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def test_it_ends_at_once_on_a_signal_with_pages_open(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    with view(str(tmp_path / "model.py")) as (process, url):
        first_plan(process, url)
        base, token = url.split("?")
        stream = urllib.request.urlopen(f"{base}api/v1/events?{token}")
        assert stream.readline() == b"event: hello\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        stream.close()


def test_it_ends_at_once_on_a_signal_while_a_target_is_traced(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL + "while True:\n    pass\n")
    with view(str(tmp_path / "model.py")) as (process, _):
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=20)
        assert process.returncode == 0
        assert told.count("\n") == 1, told
        assert told.startswith("topos view: tracing ")


def test_a_trace_that_begins_after_the_end_starts_no_process(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    planner = AgentPlanner([str(tmp_path / "model.py")])
    planner.close()
    assert list(planner.trace()) == []


def test_a_second_view_takes_a_free_port_and_a_token_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    with view(str(tmp_path / "model.py")) as (_, first):
        port = int(first.split(":")[2].split("/")[0])
        with view(str(tmp_path / "model.py"), port=port) as (_, second):
            assert int(second.split(":")[2].split("/")[0]) != port
            for address in (first.split("?")[0], f"{second.split('?')[0]}?{first.split('?')[1]}"):
                with pytest.raises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(address)
                assert refused.value.code == 401


def test_a_save_is_told_and_an_error_keeps_the_plan(tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    model.write_text(MODEL)
    with view(str(model)) as (process, url):
        plan = first_plan(process, url)
        base, token = url.split("?")
        with urllib.request.urlopen(f"{base}api/v1/events?{token}") as events:
            model.write_text(MODEL.replace("return", "if hidden.sum() > 0:\n        return hidden\n    return"))
            told = wait_for(events, "plan")
            assert (told["id"], told["revision"], told["failed"]) == (plan["id"], 2, True)
            assert told["changed_files"] == ["model.py"]
            failed = get(url, "api/v1/plans")[0]
            assert failed["error"]["line"] == 8
            assert failed["counts"] == plan["counts"]
            model.write_text(MODEL.replace("2.0", "3.0"))
            assert wait_for(events, "plan")["failed"] is False
        source = get(url, f"api/v1/plans/{plan['id']}/sources/0")
        assert "3.0" in source["text"]


def wait_for(events: Any, name: str) -> Any:
    for line in events:
        if line.strip() == f"event: {name}".encode():
            return json.loads(next(iter(events)).removeprefix(b"data: "))
    raise AssertionError("the stream ended")


@pytest.mark.parametrize(
    ("target", "told"), [("nowhere.py", "does not exist"), ("nowhere.py:main", "does not exist"), ("topos_web", "no marked file")]
)  # fmt: skip
def test_a_target_that_is_none_is_usage(
    target: str, told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main([target, "--no-browser"]) == 2
    written = capsys.readouterr()
    assert told in written.err
    assert written.out == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["examples/observed.py", "--port", "99999"], "argument --port: 99999 is no port; use a number from 0 (any free one) to 65535"),
        (["examples/observed.py", "--prot", "1"], "unrecognized arguments: --prot 1"),
        ([], "the following arguments are required: TARGET"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_one_line(arguments: list[str], told: str) -> None:
    command = [sys.executable, "-m", "topos_web", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"topos view: {told}; see `topos view --help`\n"


@pytest.mark.parametrize("step", ["projects.Projects.__init__", "server.bind"])
def test_a_signal_that_comes_before_it_serves_ends_it_well(step: str, tmp_path: Path) -> None:
    """The process signals itself at a step of its start, so that no clock decides."""
    (tmp_path / "model.py").write_text(MODEL)
    program = f"""
import os, signal, sys
from topos_core.session import projects
from topos_web import __main__ as view, server
kept = {step}
def told(*arguments, **named):
    os.kill(os.getpid(), signal.SIGTERM)
    return kept(*arguments, **named)
{step} = told
sys.exit(view.main([{str(tmp_path / "model.py")!r}, "--no-browser", "--port", "0"]))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_syntax_error_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL.replace("* 2.0", "*"))
    with view(str(tmp_path / "model.py")) as (process, url):
        assert process.stderr is not None
        assert process.stderr.readline().startswith("topos view: tracing model.py; here follows each plan")
        assert process.stderr.readline().strip() == "model.py:8:29: error[TP403]: syntax error: invalid syntax"
        failed = get(url, "api/v1/plans")[0]
    assert (failed["error"]["line"], failed["error"]["column"]) == (8, 28)
