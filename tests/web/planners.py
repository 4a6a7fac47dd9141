"""A planner that serves given documents, so that the server is tested without an agent."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from topos_core.document.changes import changes
from topos_core.document.phases import changes as marked
from topos_web.plans import PlannerError, Progress, Traced, untold

Document = dict[str, Any]


class GivenPlanner:
    """Answers what it was given; a what-if moves verdicts the way a plan would: stop observing takes a blocked region."""

    def __init__(self, *documents: Document, files: Sequence[str] = ()) -> None:
        self.traced = [Traced(d["target"], d, None) for d in documents]
        self._files = files
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.given_up: list[str] = []
        self.closed = threading.Event()

    def targets(self) -> Sequence[str]:
        return [traced.target for traced in self.traced]

    def trace(self, progress: Progress = untold) -> Iterator[Traced]:
        for traced in tuple(self.traced):
            progress(traced.target, "importing", 0, 2)
            yield traced

    def cancel(self) -> None:
        pass

    def changes(self, target: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
        base = next(t.document for t in self.traced if t.target == target)
        assert base is not None
        planned = self.planned(target, options)
        return changes(base, planned if options.get("liveness") else {**planned, "liveness": None})

    def planned(self, target: str, options: Mapping[str, Any]) -> Document:
        self.asked.append((target, options))
        document = copy.deepcopy(next(t.document for t in self.traced if t.target == target))
        assert isinstance(document, dict)
        ignored, beside = set(options.get("ignore", ())), set(options.get("beside", ()))
        document["observations"] = [
            o | {"blocks": [], "beside": i in beside} if i in ignored | beside else o
            for i, o in enumerate(document["observations"])
        ]
        for value in options.get("observe", ()) if document["observations"] else ():
            asked = {"value": value, "kind": "observe", "name": None, "asked": True, "blocks": []}
            document["observations"] = [*document["observations"], document["observations"][0] | asked]
        for region in document["regions"]:
            if region["verdict"] == "blocked" and (ignored | beside).issuperset(region["observations"]):
                region.update(verdict="taken", code=None, word=None, observations=[], paths=[], fixes=[], kernel="direct convolution",
                              reason="taken: one kernel instead of 8 calls",
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

    def give_up(self, target: str) -> None:
        self.given_up.append(target)

    def emit(self, target: str, options: Mapping[str, Any]) -> str:
        self.asked.append((target, options))
        if "<b>" in target:
            failure = {"code": "TP410", "message": "op <script> has no StableHLO form", "path": None, "line": None}
            raise PlannerError(failure)
        made = "\n".join(
            f'    %v{v} = stablehlo.add %v{v - 1}, %v{v - 1} : tensor<2xf32> loc("m.py":{v}:1)' for v in (8, 10, 15, 17)
        )
        return f"module {{\n  func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {{\n{made}\n    return %v17\n  }}\n}}\n"

    def phases(self, target: str, value: int, options: Mapping[str, Any]) -> Mapping[str, Any]:
        document = self.planned(target, options)
        if value >= len(document["ops"]["name"]):
            raise PlannerError({"code": "TP505", "message": f"no value {value}", "path": None, "line": None})
        region = next((r for r in document["regions"] if value in r["computing"] and r["verdict"] == "taken"), None)
        values = region["nodes"] if region else [value]
        recorded = [{"value": v, "text": f"%{v} = {document['names'][document['ops']['name'][v]]}"} for v in values]
        grouped = (
            [{"value": region["root"], "text": f"%{region['root']} = {region['pattern']}(x=%0)"}] if region else None
        )
        nest = None
        if region and region["pattern"].startswith("elementwise"):
            nest = [
                {"value": region["root"], "text": "for i in 0..8 {  // in whole registers"},
                *({"value": v, "text": f"  %{v} = f(%{v}[i])"} for v in region["computing"]),
                {"value": region["root"], "text": "}"},
            ]
        if grouped and nest:
            return {
                "values": values, "region": region["id"], "recorded": recorded, "grouped": grouped, "nest": nest,
                "grouped_changes": marked(recorded, grouped), "nest_changes": marked(grouped, nest),
            }  # fmt: skip
        return {
            "values": values, "region": region and region["id"], "recorded": recorded, "grouped": grouped,
            **({"grouped_changes": marked(recorded, grouped)} if grouped else {}),
            **({} if grouped else {"grouped_missing": "it runs alone: no neighbour can share its loops"}),
            "nest": None, "nest_missing": "one kernel runs it" if region else "topos makes no loop nest of it yet",
        }  # fmt: skip

    def kernels(self, target: str, region: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked.append((target, options))
        document = self.planned(target, options)
        found = next((r for r in document["regions"] if r["id"] == region), None)
        if found is None or found["verdict"] != "taken":
            failure = {"code": "TP505", "message": f"the plan takes no region {region}", "path": None, "line": None}
            raise PlannerError(failure)
        row = {
            "name": "window",
            "title": "window f32 max",
            "variant": ["f32", "max"],
            "path": "topos_core/kernels/bodies/window.py",
        }
        tile = {
            "name": "tile",
            "title": "tile f32 8x3",
            "variant": ["f32", "8x3"],
            "path": "topos_core/kernels/bodies/tile.py",
        }
        program = '["rows",true,false,[["f32",true]]]'
        loops = {
            "name": "expression",
            "title": "expression over rows: exp, sum (f32)",
            "variant": [program],
            "path": "topos_core/kernels/bodies/expression.py",
        }
        started = [{"threads": 2, "words": {"items": 4, "rows": 6, "inner": 0}}]
        lines = "".join(f"    line = {i}  # </script>\n" for i in range(400))
        return {
            "path": f"topos_core/kernels/home/{found['pattern']}.py", "target": "znver4", "ran": True, "sample_bytes": 288,
            "kernels": [
                {**row, "compiler": "numba", "text": f"def window(args, worker):\n{lines}", "generated": None, "starts": started},
                {**tile, "compiler": "llvm", "text": "def module():\n", "generated": "define void @topos_kernel\n", "starts": []},
                {**loops, "compiler": "llvm", "text": "def module():\n", "generated": None, "starts": []},
            ],
        }  # fmt: skip

    def certificate(self, target: str, region: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
        found = next((r for r in self.planned(target, options)["regions"] if r["id"] == region), None)
        if found is None or found["verdict"] != "taken":
            failure = {"code": "TP505", "message": f"the plan takes no region {region}", "path": None, "line": None}
            raise PlannerError(failure)
        said = "its formula is what was recorded: equal by algebra in 36 elements"
        return {"answer": "true", "text": f"{said}, with `max` left open" if "window" in region else said}

    def files(self) -> Sequence[str]:
        return self._files

    def root(self, target: str) -> str:
        return "/srv/models"

    def dims(self) -> Sequence[tuple[str, int]]:
        return ()

    def machines(self) -> Sequence[str]:
        return ["reference", "a100"]

    def close(self) -> None:
        self.closed.set()
