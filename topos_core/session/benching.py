"""Benches a traced target: the whole model and its regions, every contender in turns; gives `topos.bench/1`.

Figures only, each with its unit and basis; arrays never leave the machine's temporary folder, which is removed.
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from topos_core.digest import tape_digest
from topos_core.document.display import display
from topos_core.errors import ConfigurationError
from topos_core.kernels.compiling import reporting
from topos_core.matching.catalog import patterns
from topos_core.plan.decision import Decision
from topos_core.plan.request import Request
from topos_core.run.bench.contender import Contender, save_case
from topos_core.run.bench.measuring import Figure, measure, processes
from topos_core.run.bench.profile import Profile, profile
from topos_core.run.bench.region_tape import known_values, region_inputs, region_tape
from topos_core.run.interpreter import bind, evaluate, interpret
from topos_core.run.widened import widen_array, widened
from topos_core.session.contenders import PACKAGES, contenders, versions
from topos_core.session.running import chosen_inputs
from topos_core.tape.tape import Tape

if TYPE_CHECKING:
    from topos_core.session.traced import Traced

BENCH_SCHEMA: Final = "topos.bench/1"
PROFILE_RUNS: Final = 5

Report = Callable[[str, int, int], None]


def bench_target(traced: Traced, request: Mapping[str, Any], progress: Report) -> dict[str, Any]:
    """Measures a target.

    `request` may hold `inputs seed threads rounds seconds regions contenders fidelity cost machine`.

    Raises:
        ConfigurationError: TP502, TP505, the inputs do not fit; TP504, an option; TP507, an opaque op.
        BaseException: Whatever `example=` raises.
    """
    wanted = list(request.get("contenders") or PACKAGES)
    wrong = next((name for name in wanted if name not in PACKAGES), None)
    if wrong is not None:
        raise ConfigurationError(f"no contender is called {wrong!r}; there are {', '.join(PACKAGES)}", code="TP504")
    options = {key: request[key] for key in ("fidelity", "cost", "machine") if request.get(key) is not None}
    plan = traced.plan({"machine": "host", **options, "consumer": "home"})
    inputs, origin = chosen_inputs(traced, request.get("inputs"), int(request.get("seed") or 0))
    taking_part, left_out = contenders(display(traced.target), _own(traced), wanted)
    several = int(request.get("threads") or _processors())
    bench = _Bench(
        traced, plan.data.request, taking_part, sorted({1, several}), int(request.get("rounds") or 3),
        0.3 if request.get("seconds") is None else float(request["seconds"]), progress,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="topos-bench-") as folder:
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
        progress("profile", 0, 1)
        with reporting(progress):
            found = profile(plan.data, _program(plan.data), inputs, PROFILE_RUNS)
        model = Path(folder) / "model"
        bench.save(model, traced.tape, inputs, plan.data.request)
        cases = [model]
        picked = _picked(plan.data.taken, traced.tape, found, int(request.get("regions", 8)))
        for number, alike in enumerate(picked):
            cases.append(Path(folder) / f"region-{number}")
            bench.save_region(cases[-1], alike[0], inputs)
        figures = bench.measured(cases)
    document = plan.document(target=traced.target, root=traced.root, sources=False)
    by_root = {alike[0].match.root: (alike, figures[at + 1]) for at, alike in enumerate(picked)}
    return {
        "schema": BENCH_SCHEMA,
        "target": document["target"],
        "digest": tape_digest(traced.tape),
        **{key: document[key] for key in ("consumer", "fidelity", "machine", "cost")},
        "inputs": display(origin),
        "host": {"processor": display(_processor()), "processors": _processors(), "load": load},
        "settings": {"threads": bench.threads, "rounds": bench.rounds, "seconds": bench.seconds},
        "contenders": [
            *(
                {"name": c.name, "compares": c.compares, "packages": versions(c.name), "left_out": None}
                for c in taking_part
            ),
            *({"name": n, "compares": None, "packages": None, "left_out": why} for n, why in left_out.items()),
        ],
        "model": [_figure(each) for each in figures[0]],
        "regions": [_region(row, found, by_root, traced.tape) for row in document["regions"]],
        "profile": _profile(found, plan.data.taken),
    }


class _Bench:
    """One request: what is measured how often, for whom."""

    def __init__(
        self,
        traced: Traced,
        request: Request,
        taking_part: Sequence[Contender],
        threads: list[int],
        rounds: int,
        seconds: float,
        progress: Report,
    ) -> None:
        self.traced, self.request, self.contenders = traced, request, taking_part
        self.threads, self.rounds, self.seconds, self.progress = threads, rounds, seconds, progress
        self.known = known_values(traced.tape)

    def save(self, folder: Path, tape: Tape, inputs: Sequence[np.ndarray], request: Request) -> None:
        """Writes a case with its results in float64."""
        exact = interpret(widened(tape), [widen_array(array) for array in inputs])
        name = self.traced.target.rpartition(":")[2]
        text = self.traced.tape.sources.get(self.traced.path, "")
        entry = {"path": self.traced.path, "root": self.traced.root, "name": name, "text": text}
        save_case(folder, tape, inputs, exact, {"request": _plain(request), "entry": entry})

    def save_region(self, folder: Path, decision: Decision, inputs: Sequence[np.ndarray]) -> None:
        """Writes the case of a region alone, on the values that it has in the model."""
        tape, match = self.traced.tape, decision.match
        values = evaluate(tape, bind(tape, inputs), match.bindings.values())
        cut = region_tape(tape, match, values, self.known)
        alone = replace(
            self.request, cost="always", observe=(), ignore=frozenset(), off_at=frozenset(),
            off=frozenset(patterns()) - {match.pattern},
        )  # fmt: skip
        self.save(folder, cut, region_inputs(tape, match, values, self.known), alone)

    def measured(self, cases: Sequence[Path]) -> list[list[Figure]]:
        """Measures every case under every number of threads; the target's own forms run the whole model alone."""
        found: list[list[Figure]] = [[] for _ in cases]
        for count in self.threads:
            for own in (False, True):
                crew = [c for c in self.contenders if c.maker.endswith("_own") == own]
                for rows in found[1:] if own else ():
                    rows += [_whole_only(contender, count) for contender in crew]
                with processes(crew, count) as started:
                    for at, case in enumerate(cases[:1] if own else cases):
                        title = f"{'model' if at == 0 else f'region {at} of {len(cases) - 1}'}, {count} threads"
                        found[at] += measure(
                            started, case, count, rounds=self.rounds, seconds=self.seconds, progress=self.progress,
                            title=title,
                        )  # fmt: skip
        return found


def _whole_only(contender: Contender, threads: int) -> Figure:
    """Gives the row of a contender that runs the target's own form, for a region."""
    return Figure(
        contender.name, threads, "cpu" if threads == 1 else "wall", None, 0, 0, None, None,
        failure=f"not measured: {contender.compares} runs as a whole, a region of it does not run alone",
    )  # fmt: skip


def _own(traced: Traced) -> str | None:
    """Says of which framework the target itself is: `torch`, `onnx`, or None."""
    if traced.path.endswith(".onnx"):
        return "onnx"
    from topos_core.importers.torch_export.target import target_of

    told, fed = traced.framework == "torch", bool(traced.tape.inputs)
    found = None if traced.function is None else target_of(traced.function, told=told, fed=fed)
    return "torch" if found is not None else None


def _program(plan: Any) -> Any:
    from topos_core.run.program import make_program

    return make_program(plan)


def _picked(taken: Sequence[Decision], tape: Tape, found: Profile, count: int) -> list[list[Decision]]:
    """Groups taken regions of one structure and one set of shapes; gives the groups that a run spends most time in."""
    groups: dict[Any, list[Decision]] = {}
    for decision in taken:
        match = decision.match
        kinds = (*(str(tape.type_of(v)) for v in match.bindings.values()), str(tape.type_of(match.root)))
        groups.setdefault((match.pattern, kinds, decision.kernel), []).append(decision)
    spent = lambda alike: sum(found.steps.get(one.match.root, 0.0) for one in alike)  # noqa: E731
    return sorted(groups.values(), key=spent, reverse=True)[:count]


def _region(row: Mapping[str, Any], found: Profile, measured: Mapping[int, Any], tape: Tape) -> dict[str, Any]:
    kept = ("id", "key", "fingerprint", "pattern", "verdict", "scope")
    place = ("path", "line", "column", "end_line", "end_column")
    taken = row["verdict"] == "taken"
    alike, figures = measured.get(row["root"], ((), ())) if taken else ((), ())
    recorded = [found.recorded[value] for value in row["nodes"] if value in found.recorded]
    return {
        **{key: row[key] for key in (*kept, *place)},
        "seconds": _seconds(found.steps[row["root"]]) if taken and row["root"] in found.steps else None,
        "recorded_seconds": _seconds(sum(recorded)) if recorded else None,
        "alike": [f"{one.match.pattern}@{one.match.root}" for one in alike[1:]],
        "figures": [_figure(each) for each in figures],
    }


def _profile(found: Profile, taken: Sequence[Decision]) -> dict[str, Any]:
    regions = {one.match.root: f"{one.match.pattern}@{one.match.root}" for one in taken}
    return {
        "runs": found.runs,
        "threads": 1,
        "clock": "cpu",
        "steps": [
            {"value": value, "region": regions.get(value), "seconds": _seconds(each)}
            for value, each in found.steps.items()
        ],
        "recorded": [{"value": value, "seconds": _seconds(each)} for value, each in found.recorded.items()],
    }


def _figure(figure: Figure) -> dict[str, Any]:
    plain = figure.to_json()
    if figure.seconds is not None:
        plain["seconds"] |= {"unit": "second", "basis": "measured"}
    if figure.failure is not None:
        plain["failure"] = display(figure.failure)
    return plain


def _seconds(value: float) -> dict[str, Any]:
    return {"value": value, "unit": "second", "basis": "measured"}


def _plain(request: Request) -> dict[str, Any]:
    return {
        "consumer": request.consumer, "fidelity": request.fidelity, "machine": request.machine, "cost": request.cost,
        "dialect": request.dialect, "observe": list(request.observe), "ignore": sorted(request.ignore),
        "off": sorted(request.off), "off_at": sorted(map(list, request.off_at)),
    }  # fmt: skip


def _processors() -> int:
    from topos_core.run.executor import processors

    return processors()


def _processor() -> str:
    return next(_cpu_names(), platform.processor() or platform.machine())


def _cpu_names() -> Iterator[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # another system
        return
    yield from (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
