"""A planner that serves given documents, so that the server is tested without an agent."""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from topos_core.document.changes import changes
from topos_web.plans import PlannerError, Traced

Document = dict[str, Any]


class GivenPlanner:
    """Answers what it was given; a what-if moves verdicts the way a plan would: stop observing takes a blocked region."""

    def __init__(self, *documents: Document, files: Sequence[str] = ()) -> None:
        self.traced = [Traced(d["target"], d, None) for d in documents]
        self._files = files
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.closed = threading.Event()

    def trace(self) -> Sequence[Traced]:
        return list(self.traced)

    def changes(self, target: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
        base = next(t.document for t in self.traced if t.target == target)
        assert base is not None
        return changes(base, self.planned(target, options))

    def planned(self, target: str, options: Mapping[str, Any]) -> Document:
        self.asked.append((target, options))
        document = copy.deepcopy(next(t.document for t in self.traced if t.target == target))
        assert isinstance(document, dict)
        ignored = set(options.get("ignore", ()))
        document["observations"] = [
            o | {"blocks": []} if i in ignored else o for i, o in enumerate(document["observations"])
        ]
        for region in document["regions"]:
            if region["verdict"] == "blocked" and ignored.issuperset(region["observations"]):
                region.update(verdict="taken", code=None, word=None, observations=[], paths=[], kernel="direct convolution",
                              reason="taken: one kernel instead of 8 recorded ops",
                              headline=region["headline"].replace("blocked", "taken"))  # fmt: skip
            if region["pattern"] in options.get("off", ()):
                region.update(verdict="declined", code="TP208", word="switched-off", reason="declined: switched off")
            if options.get("machine", "reference") != "reference":
                region["cost"] = {
                    n: f | {"value": f["value"] / 10} if f["unit"] == "second" else f for n, f in region["cost"].items()
                }
            if "consumer" in options:
                region["consumer"] = options["consumer"]
        for name in ("consumer", "machine", "fidelity"):
            document[name] = options.get(name, document[name])
        verdicts = [r["verdict"] for r in document["regions"]]
        document["counts"] |= {v: verdicts.count(v) for v in ("taken", "declined", "blocked", "near_miss")}
        return document

    def emit(self, target: str, options: Mapping[str, Any]) -> str:
        self.asked.append((target, options))
        if "<b>" in target:
            failure = {"code": "TP410", "message": "op <script> has no StableHLO form", "path": None, "line": None}
            raise PlannerError(failure)
        made = "\n".join(
            f'    %v{v} = stablehlo.add %v{v - 1}, %v{v - 1} : tensor<2xf32> loc("m.py":{v}:1)' for v in (8, 10, 15, 17)
        )
        return f"module {{\n  func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {{\n{made}\n    return %v17\n  }}\n}}\n"

    def files(self) -> Sequence[str]:
        return self._files

    def root(self, target: str) -> str:
        return "/srv/models"

    def machines(self) -> Sequence[str]:
        return ["reference", "a100"]

    def close(self) -> None:
        self.closed.set()
