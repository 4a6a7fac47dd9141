"""What the viewer's server asks of the process that runs user code."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from topos_web.agents import AgentPlanner
from topos_web.plans import PlannerError

MODEL = "import numpy as np\n\n\n# topos: entry inputs=f32[N,8]\ndef main(x):\n    return np.tanh(x)\n"


@pytest.mark.parametrize(
    ("project", "given", "expected"),
    [
        ("", [("N", 2)], "f32[2,8]"),
        ("[tool.topos.dims]\nN = 3\n", [], "f32[3,8]"),
        ("[tool.topos.dims]\nN = 3\n", [("N", 4)], "f32[4,8]"),
    ],
)
def test_named_extents_come_from_the_command_line_else_from_the_project(
    tmp_path: Path, project: str, given: list[tuple[str, int]], expected: str
) -> None:
    (tmp_path / "pyproject.toml").write_text(project)
    (tmp_path / "net.py").write_text(MODEL)
    planner = AgentPlanner([str(tmp_path / "net.py")], dims=given)
    try:
        (found,) = planner.trace()
    finally:
        planner.close()
    assert found.document is not None
    assert expected in found.document["types"]


def test_every_setting_of_the_project_holds_for_the_page_unless_it_asks_otherwise(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.topos]\nconsumer = "stablehlo"\nfidelity = "exact"\ncost = "always"\ndialect = "xla"\noff = ["softmax"]\n'
        '[tool.topos.entries]\n"net.py:other" = "f32[2,3]"\n'
    )
    (tmp_path / "net.py").write_text(MODEL.replace("[N,8]", "[2,8]") + "\n\ndef other(x):\n    return np.tanh(x)\n")
    planner = AgentPlanner([str(tmp_path / "net.py")])
    try:
        main, other = planner.trace()
        assert (main.target, other.target) == ("net.py:main", "net.py:other")
        assert main.document is not None
        named = ("consumer", "fidelity", "cost", "dialect")
        assert [main.document[name] for name in named] == ["stablehlo", "exact", "always", "xla"]
        assert planner.changes(main.target, {"fidelity": "fast"})["fidelity"] == "fast"
        assert planner.changes(main.target, {"off": ["gelu"]})["consumer"] == "stablehlo"
        assert planner._asked(main.target, {"off": ["gelu"]})["off"] == ["softmax", "gelu"]
    finally:
        planner.close()


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"observe": [99999]}, "no value %99999 to observe"),
    ({"off_at": [["softmax", 99999]]}, "no value %99999 to switch softmax off at"),
    ({"off_at": [["softmax", 0]]}, "no softmax ends at %0, so none is switched off there"),
    ({"off_at": [["softmux", 1]]}, "no pattern is called 'softmux'; did you mean softmax"),
]


def test_a_value_or_a_pattern_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MODEL)
    planner = AgentPlanner([str(tmp_path / "net.py")], dims=[("N", 2)])
    try:
        (found,) = planner.trace()
        for options, told in REFUSED:
            with pytest.raises(PlannerError, match=told):  # which the API answers with 422
                planner.changes(found.target, options)
    finally:
        planner.close()


def test_an_extent_that_the_model_does_not_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MODEL)
    planner = AgentPlanner([str(tmp_path / "net.py")], dims=[("N", 2), ("M", 2)])
    try:
        (found,) = planner.trace()
    finally:
        planner.close()
    assert found.error is not None
    assert "no extent is called M" in found.error["message"]
    assert (found.error["path"], found.error["line"]) == (None, None)  # it was asked for outside of every file


def test_a_question_that_is_given_up_ends_and_the_next_one_is_answered(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "net.py").write_text(MODEL.replace("[N,8]", "[2,8]"))
    planner = AgentPlanner([str(tmp_path / "net.py")])
    try:
        (found,) = planner.trace()
        stopped = [one for warm in psutil.Process().children() for one in warm.children(recursive=True)]
        for process in stopped:
            process.suspend()  # a plan that takes for ever
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(planner.changes, found.target, {"off": ["gelu"]})
            while not answer.done():
                planner.give_up(found.target)
                time.sleep(0.05)
            with pytest.raises(PlannerError, match="cancelled"):
                answer.result()
        assert planner.changes(found.target, {"off": ["gelu"]})["consumer"] == "home"
    finally:
        planner.close()
